"""Reads AMDGPU assembly as LLVM prints it: kernels, instructions, control flow, metadata.

    for kernel in assembly.read("file.s"):
        kernel.name, kernel.target, kernel.instructions, kernel.blocks, kernel.metadata

Only what LLVM prints for gfx11 and gfx12 is understood; anything else is an AssemblyError that
names the line.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import dataclasses
import functools
import re


class AssemblyError(Exception):
    """What is wrong, and in which line."""


# s4, v[2:5], v7.l, ttmp9; a register is a pair of its file and its number.
REGISTER = re.compile(r"(?<![\w.])(v|s|ttmp)(?:(\d+)(?:\.[lh])?|\[(\d+)(?::(\d+))?\])(?![\w(])")
NAMED = {
    "vcc": ["vcc_lo", "vcc_hi"], "vcc_lo": ["vcc_lo"], "vcc_hi": ["vcc_hi"],
    "exec": ["exec_lo", "exec_hi"], "exec_lo": ["exec_lo"], "exec_hi": ["exec_hi"], "m0": ["m0"],
}


@functools.cache
def registers(text):
    """The registers that a text names: {("v", 3), ("s", 4), ("vcc_lo", 0), …}."""
    found = set()
    for file, one, first, last in REGISTER.findall(text):
        low = int(one or first)
        found.update((file, n) for n in range(low, int(last or low) + 1))
    for name in re.findall(r"\b(?:vcc|exec)(?:_lo|_hi)?\b|\bm0\b", text):
        found.update((register, 0) for register in NAMED[name])
    return frozenset(found)


@dataclasses.dataclass
class Instruction:
    line: int  # 1-based
    mnemonic: str
    operands: list  # texts, without modifiers such as offset:16
    text: str
    touched: set  # registers that it reads or writes

    def loaded(self):
        """The registers that a load writes, with the first operand as its destination."""
        return registers(self.operands[0]) if self.operands else set()


@functools.cache
def operands_of(text):
    return [part.strip() for part in re.split(r",(?![^\[]*\])", text)] if text else []


def parse_instruction(line, text):
    mnemonic, _, rest = text.partition(" ")
    operands = operands_of(rest)
    touched = registers(rest)
    if mnemonic in ("s_cbranch_vccz", "s_cbranch_vccnz") or mnemonic.startswith("v_div_fmas"):
        touched |= registers("vcc")
    return Instruction(line, mnemonic, operands, text, touched)


@dataclasses.dataclass
class Block:
    instructions: list
    successors: list = dataclasses.field(default_factory=list)  # indices of blocks


class Kernel:
    def __init__(self, name, target):
        self.name = name
        self.target = target
        self.metadata = {}  # "vgpr_count": "45", …
        self.blocks = []

    @property
    def instructions(self):
        return [i for block in self.blocks for i in block.instructions]

    def number(self, field):
        """A number of the metadata; AssemblyError where there is none."""
        if not self.metadata.get(field, "").isdigit():
            raise AssemblyError(f"{self.name}: the metadata has no number .{field}")
        return int(self.metadata[field])

    @property
    def wave(self):
        return self.number("wavefront_size")

    def loops(self):
        """The natural loops as sets of blocks, by the back edges that end them."""
        dominators = dominators_of(self.blocks)
        loops = {}
        for source, block in enumerate(self.blocks):
            for head in block.successors:
                if head in dominators[source]:
                    loops.setdefault(head, {head}).update(body_of(self.blocks, head, source))
        return [loops[head] for head in sorted(loops)]

    def inner_loop(self):
        """The innermost loop that has the most products, as a list of instructions, or None."""
        candidates = [
            [i for index in sorted(loop) for i in self.blocks[index].instructions]
            for loop in self.loops()
        ]
        candidates = [body for body in candidates if count(body, "v_wmma")]
        # An outer loop has the products of its inner ones, too: take those that contain no other.
        candidates.sort(key=len)
        innermost = []
        for body in candidates:
            lines = {i.line for i in body}
            if not any({i.line for i in other} < lines for other in innermost):
                innermost.append(body)
        return max(innermost, key=lambda body: count(body, "v_wmma"), default=None)


def count(instructions, prefix):
    return sum(i.mnemonic.startswith(prefix) for i in instructions)


def dominators_of(blocks):
    predecessors = [[] for _ in blocks]
    for index, block in enumerate(blocks):
        for successor in block.successors:
            predecessors[successor].append(index)
    dominators = [set(range(len(blocks))) for _ in blocks]
    if blocks:
        dominators[0] = {0}
    changed = True
    while changed:
        changed = False
        for index in range(1, len(blocks)):
            above = [dominators[p] for p in predecessors[index]]
            new = set.intersection(*above) | {index} if above else {index}
            changed |= new != dominators[index]
            dominators[index] = new
    return dominators


def body_of(blocks, head, tail):
    """The blocks from which tail is reached without passing head."""
    body, todo = {head, tail}, [tail] if tail != head else []
    while todo:
        at = todo.pop()
        for index, block in enumerate(blocks):
            if at in block.successors and index not in body:
                body.add(index)
                todo.append(index)
    return body


def build_blocks(lines):
    """Basic blocks of a kernel's labels and instructions: [(label or None, Instruction or None)]."""
    blocks, labels, open_block = [], {}, None
    for label, instruction in lines:
        if label is not None:
            open_block = None
            labels[label] = len(blocks)
            continue
        if open_block is None:
            open_block = Block([])
            blocks.append(open_block)
        open_block.instructions.append(instruction)
        if instruction.mnemonic.startswith(("s_branch", "s_cbranch", "s_endpgm")):
            open_block = None
    for index, block in enumerate(blocks):
        last = block.instructions[-1]
        if last.mnemonic.startswith(("s_swappc", "s_setpc", "s_call")):
            raise AssemblyError(f"line {last.line}: calls are not understood: {last.text}")
        if last.mnemonic.startswith(("s_branch", "s_cbranch")):
            target = last.operands[0]
            if target not in labels or labels[target] >= len(blocks):
                raise AssemblyError(f"line {last.line}: no such label: {target}")
            block.successors.append(labels[target])
        if not last.mnemonic.startswith(("s_branch", "s_endpgm")) and index + 1 < len(blocks):
            block.successors.append(index + 1)
    return blocks


def read_metadata(lines):
    """{kernel: {field: text}} of the document between .amdgpu_metadata and its end."""
    kernels, fields, inside = {}, {}, False
    for line in lines:
        if ".amdgpu_metadata" in line or ".end_amdgpu_metadata" in line:
            inside = ".end_" not in line
            continue
        # A kernel's own fields are indented by four; those of its arguments by more.
        field = re.match(r"(?:  - |    )\.(\w+):\s*(.*?)\s*$", line) if inside else None
        if not field:
            continue
        if line.startswith("  - "):
            fields = {}
        fields[field[1]] = field[2].strip("'\"")
        if field[1] == "name":
            kernels[fields["name"]] = fields
    return kernels


def read(path):
    """The kernels of a file, in their order."""
    with open(path, encoding="utf-8") as file:
        return parse(file.read().split("\n"))


def parse(lines):
    metadata, kernels, target = read_metadata(lines), [], None
    name, body = None, []
    for number, line in enumerate(lines, 1):
        text = line.split(";")[0].split("//")[0].strip()
        begin = text.endswith(":") and re.match(r"([\w.$]+):$", text)
        if text.startswith(".amdgcn_target"):
            target = re.search(r"--(\w+)", text)[1]
        elif begin and begin[1] in metadata:
            name, body = begin[1], []
        elif name is None:
            continue
        elif begin and begin[1].startswith(".Lfunc_end") or text.startswith(".section"):
            kernel = Kernel(name, target)
            kernel.metadata, kernel.blocks = metadata[name], build_blocks(body)
            kernels.append(kernel)
            name = None
        elif begin:
            body.append((begin[1], None))
        elif text and not text.startswith("."):
            body.append((None, parse_instruction(number, " ".join(text.split()))))
    if name is not None:
        raise AssemblyError(f"{name}: the text ends inside of the kernel")
    return kernels
