"""Checks the assembly of AMD kernels and says what they cost.

    isa.py [TITLE=]FILE.s… [--kernel=NAME] [--wmma=N] [--loop-wmma=N] [--min-share=PERCENT]
           [--max-lds-reads=N] [--min-waves=N] [--table] [--update=DOC.md | --check=DOC.md]

Every kernel of the files, or the one named, must have no spills, no scratch memory, no loop that
serialises a buffer instruction over its lanes ("waterfall"), and no hazard that a wait should have
kept away (waits.py). --wmma and --loop-wmma are the numbers of v_wmma that it must have, in all
and in its inner loop. --min-share, --max-lds-reads and --min-waves are limits of its table: the
percentage of v_wmma in the inner loop, LDS reads for each of them, and resident waves a SIMD.

--table prints the table as Markdown; --update writes it between "<!-- isa NAME -->" and
"<!-- end of isa NAME -->" in a document, and --check fails where the document has another one.
NAME is that of --name, or "costs".

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import argparse
import re
import sys

import assembly
import cost
import waits


def is_waterfall(body):
    """Whether a loop runs its buffer instruction for one lane's descriptor after another's."""
    names = [i.mnemonic for i in body]
    return (any(n.startswith("v_readfirstlane") for n in names)
            and any("saveexec" in n or n.startswith("v_cmpx") for n in names)
            and any(n.startswith(("buffer_", "tbuffer_")) for n in names)
            and any(n == "s_cbranch_execnz" for n in names))


def problems_of(kernel):
    """[(line or None, text)] of what no kernel may have."""
    for field in ("vgpr_spill_count", "sgpr_spill_count", "private_segment_fixed_size"):
        if kernel.number(field):
            yield None, f".{field} is {kernel.metadata[field]}"
    if kernel.metadata.get("uses_dynamic_stack") == "true":
        yield None, "uses a dynamic stack"
    scratch = [i for i in kernel.instructions if i.mnemonic.startswith("scratch_")]
    if scratch:
        yield scratch[0].line, f"{len(scratch)} times scratch memory, first {scratch[0].text}"
    for loop in kernel.loops():
        body = [i for index in sorted(loop) for i in kernel.blocks[index].instructions]
        if is_waterfall(body):
            yield body[0].line, "a loop over the lanes around a buffer instruction"
    yield from waits.check(kernel)


def wrong_numbers(kernel, options):
    """What differs from the numbers that the command line asks for."""
    costs = cost.Cost(kernel)
    if options.wmma is not None:
        found = assembly.count(kernel.instructions, "v_wmma")
        if found != options.wmma:
            yield None, f"{found} v_wmma instead of {options.wmma}"
    if options.loop_wmma is not None:
        found = assembly.count(costs.loop or [], "v_wmma")
        if found != options.loop_wmma:
            yield None, f"{found} v_wmma in the inner loop instead of {options.loop_wmma}"
    if options.min_share is not None and costs.share() < options.min_share:
        yield None, f"v_wmma are {costs.share():.1f} % of the inner loop, " \
                    f"less than {options.min_share:g} %"
    reads = costs.classes["LDS reads"]
    if options.max_lds_reads is not None and reads > options.max_lds_reads * costs.products:
        yield None, f"{reads} LDS reads for {costs.products} v_wmma"
    if options.min_waves is not None and costs.waves() < options.min_waves:
        yield None, f"{costs.waves():g} waves a SIMD, fewer than {options.min_waves:g}"


def document(path, name, text, update):
    """Whether the document had or now has the text between its marks."""
    begin, end = f"<!-- isa {name} -->\n\n", f"\n<!-- end of isa {name} -->"
    with open(path, encoding="utf-8") as file:
        old = file.read()
    parts = re.match(f"(.*?{re.escape(begin)})(.*?)({re.escape(end)}.*)$", old, flags=re.S)
    if not parts:
        print(f"{path}: error: no place for the table: {begin.strip()} … {end.strip()}")
        return False
    if parts[2] == text:
        return True
    if not update:
        print(f"{path}: error: has another table; --update={path} puts this one there\n{text}",
              end="")
        return False
    with open(path, "w", encoding="utf-8") as file:
        file.write(parts[1] + text + parts[3])
    return True


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1], add_help=False)
    parser.add_argument("files", nargs="+")
    for name in ("kernel", "update", "check"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--name", default="costs")
    for name in ("wmma", "loop-wmma"):
        parser.add_argument(f"--{name}", type=int)
    for name in ("min-share", "max-lds-reads", "min-waves"):
        parser.add_argument(f"--{name}", type=float)
    parser.add_argument("--table", action="store_true")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse_arguments(arguments)
    failed, titled = False, []
    for argument in options.files:
        title, _, path = argument.rpartition("=")
        try:
            kernels = assembly.read(path)
            if options.kernel:
                kernels = [k for k in kernels if k.name == options.kernel]
            if not kernels:
                raise assembly.AssemblyError("no such kernel")
            for kernel in kernels:
                found = list(problems_of(kernel)) + list(wrong_numbers(kernel, options))
                for line, text in found:
                    at = f"{path}:{line}" if line else path
                    print(f"{at}: error: {kernel.name}: {text}")
                failed = failed or bool(found)
                titled.append((title or f"`{kernel.name}`", cost.Cost(kernel)))
        except (OSError, UnicodeDecodeError, assembly.AssemblyError) as error:
            print(f"{path}: error: {error}")
            failed = True
    if options.table and titled:
        print(cost.table(titled), end="")
    if failed:
        return True
    for path, update in ((options.update, True), (options.check, False)):
        if path and not document(path, options.name, cost.table(titled), update):
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
