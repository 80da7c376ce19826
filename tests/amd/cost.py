"""What a kernel costs, as far as its assembly tells: the instructions of its inner loop by class,
the bytes they move, and how many waves fit on a SIMD.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import re

import assembly

# The first class whose pattern matches; hints that no unit executes are among the others.
CLASSES = [
    ("v_wmma", r"v_wmma"),
    ("LDS reads", r"ds_load|ds_read"),
    ("LDS writes", r"ds_store|ds_write"),
    ("global reads", r"(buffer|tbuffer|global|flat)_load"),
    ("global writes", r"(buffer|tbuffer|global|flat)_store"),
    ("waits", r"s_wait"),
    ("barriers", r"s_barrier"),
    ("branches", r"s_c?branch|s_endpgm"),
    ("other", r"s_(delay_alu|clause|nop|setprio|sched|sleep|inst_prefetch|set_inst_prefetch)|"
              r"(buffer|global)_(gl\d_)?(inv|wb)"),
    ("scalar loads", r"s_(buffer_)?load"),
    ("VALU", r"v_"),
    ("SALU", r"s_"),
    ("other", r""),
]
# In the order of the table.
SHOWN = ["v_wmma", "LDS reads", "LDS writes", "global reads", "global writes", "VALU", "SALU",
         "scalar loads", "waits", "barriers", "branches", "other"]

# Vector registers a lane of a SIMD has for waves of 32, and how many are given out together:
# GCNSubtarget's getTotalNumVGPRs and getVGPRAllocGranule. Waves of 64 take two of each.
LARGE, SMALL = (1536, 24), (1024, 16)
REGISTER_FILES = {
    "gfx1100": LARGE, "gfx1101": LARGE, "gfx1102": SMALL, "gfx1103": SMALL,
    "gfx1150": SMALL, "gfx1151": LARGE, "gfx1200": LARGE, "gfx1201": LARGE,
}
# RDNA3 and RDNA4 ISA guides, "Shader Hardware": a WGP has 4 SIMDs and 128 KiB of LDS, which is
# given out in pieces of 1 KiB; a SIMD holds 16 waves, a WGP 32 workgroups.
SIMDS, LDS_BYTES, LDS_PIECE, MOST_WAVES, MOST_WORKGROUPS = 4, 128 << 10, 1 << 10, 16, 32


def class_of(instruction):
    return next(name for name, pattern in CLASSES if re.match(pattern, instruction.mnemonic))


def bytes_a_lane(instruction):
    """What a memory instruction moves for each lane: ds_load_2addr_b64 16, buffer_load_u16 2."""
    size = re.search(r"_(?:[bui]|f)(\d+)(?:x(\d))?(?:_|$)", instruction.mnemonic)
    if not size:
        raise assembly.AssemblyError(
            f"line {instruction.line}: how many bytes does this move? {instruction.text}")
    pairs = 2 if "_2addr" in instruction.mnemonic else 1
    return int(size[1]) // 8 * int(size[2] or 1) * pairs


def up_to(value, multiple):
    return -(-value // multiple) * multiple


class Cost:
    """The numbers of a kernel's table."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.loop = kernel.inner_loop()
        body = self.loop if self.loop is not None else kernel.instructions
        self.instructions = len(body)
        self.classes = {name: 0 for name in SHOWN}
        for instruction in body:
            self.classes[class_of(instruction)] += 1
        self.products = self.classes["v_wmma"]
        moved = {"LDS reads": 0, "global reads": 0}
        for instruction in body:
            if class_of(instruction) in moved:
                moved[class_of(instruction)] += bytes_a_lane(instruction) * kernel.wave
        self.lds_bytes_read, self.global_bytes_read = moved["LDS reads"], moved["global reads"]
        self.vgprs = kernel.number("vgpr_count")
        self.sgprs = kernel.number("sgpr_count")
        self.lds = kernel.number("group_segment_fixed_size")
        self.threads = kernel.number("max_flat_workgroup_size")

    def waves_by_registers(self):
        """Waves that the register file of a SIMD holds."""
        if self.kernel.target not in REGISTER_FILES:
            raise assembly.AssemblyError(f"the registers of {self.kernel.target} are not known")
        total, piece = REGISTER_FILES[self.kernel.target]
        if self.kernel.wave == 64:
            total, piece = total // 2, piece // 2
        return min(MOST_WAVES, total // up_to(max(self.vgprs, 1), piece))

    def waves(self):
        """Waves of whole workgroups that a SIMD holds on average."""
        of_workgroup = up_to(self.threads, self.kernel.wave) // self.kernel.wave
        workgroups = min(MOST_WORKGROUPS, SIMDS * self.waves_by_registers() // of_workgroup)
        if self.lds:
            workgroups = min(workgroups, LDS_BYTES // up_to(self.lds, LDS_PIECE))
        return workgroups * of_workgroup / SIMDS

    def a_product(self, value):
        return f"{value / self.products:.4g}" if self.products else "–"

    def share(self):
        return 100 * self.products / self.instructions if self.instructions else 0

    def rows(self):
        """[(what, value)] of the table."""
        where = "the inner loop" if self.loop is not None else "the kernel, which has no inner loop"
        yield "target", f"{self.kernel.target}, wave {self.kernel.wave}"
        yield f"instructions of {where}", str(self.instructions)
        for name in SHOWN:
            yield f"… {name}", str(self.classes[name])
        yield "v_wmma of all instructions", f"{self.share():.1f} %"
        yield "LDS reads a v_wmma", self.a_product(self.classes["LDS reads"])
        yield "LDS bytes read a v_wmma", self.a_product(self.lds_bytes_read)
        yield "global bytes read a v_wmma", self.a_product(self.global_bytes_read)
        yield "VGPRs", str(self.vgprs)
        yield "SGPRs", str(self.sgprs)
        yield "LDS bytes a workgroup", str(self.lds)
        yield "threads a workgroup", str(self.threads)
        yield "waves a SIMD, by registers", str(self.waves_by_registers())
        yield "waves a SIMD, with LDS and workgroups", f"{self.waves():g}"


def table(titled):
    """The Markdown table of [(title, Cost)], a column for each."""
    columns = [list(cost.rows()) for _, cost in titled]
    head = "| | " + " | ".join(title for title, _ in titled) + " |"
    lines = [head, "|---|" + "---:|" * len(titled)]
    for cells in zip(*columns):
        # Kernels without an inner loop say so in a row's name; the first column's name is taken.
        lines.append(f"| {cells[0][0]} | " + " | ".join(value for _, value in cells) + " |")
    return "\n".join(lines) + "\n"
