"""Makes a wheel of the package and an installed tcc: wheel.py TREE SECONDS FOLDER

TREE is what `cmake --install` made, whose library has LLVM inside, and `cmake --install --component python`, where that
was done; SECONDS since 1970 are the time of all files, so that the same tree gives the same wheel. Prints the wheel's
path, in FOLDER. The variable TCC_ZIP_LEVEL may say how much it is compressed, 0 to 9.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import base64
import hashlib
import itertools
import os
import pathlib
import re
import sys
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
# An interpreter that does not load the extension, PyPy's or one without a GIL, does without: the tag is of both.
PYTHONS = {False: "py3-none", True: "cp39.py3-abi3.none"}  # by whether there is one
PLATFORM = "manylinux_2_34_{machine}"
MACHINES = {62: "x86_64", 183: "aarch64"}  # by ELF's e_machine

METADATA = """\
Metadata-Version: 2.1
Name: tcc
Version: {version}
Summary: Matrix products, with everything fused into them, as functions of arrays: a compiler to GPU kernels
License: Apache-2.0 WITH LLVM-exception
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Requires-Python: >=3.9
Description-Content-Type: text/markdown

{description}"""

WHEEL = """\
Wheel-Version: 1.0
Generator: tcc
Root-Is-Purelib: false
{tags}
"""


def read_tree(tree):
    """What is in the wheel, by name; but for the list of it."""
    header = (tree / "include/tcc/tcc.h").read_text()
    version = re.search(r'TCC_VERSION_STRING "(.*)"', header)[1]
    info = f"tcc-{version}.dist-info"
    files = {f"tcc/{p.name}": p.read_bytes() for p in sorted((HERE / "tcc").iterdir()) if p.is_file()}
    library, = (tree / "lib").glob("libtcc.so.*.*.*")
    interface = library.name.rsplit(".", 1)[0]  # the name that programs are bound to, and this package
    files[f"tcc/{interface}"] = elf = library.read_bytes()
    extensions = {f"tcc/{p.name}": p.read_bytes() for p in (tree / "python").glob("*.so")}
    files.update(extensions)
    platform = PLATFORM.format(machine=MACHINES[int.from_bytes(elf[18:20], "little")])
    tag = f"{PYTHONS[bool(extensions)]}-{platform}"
    files[f"{info}/METADATA"] = METADATA.format(
        version=version, description=(HERE.parent / "docs/python.md").read_text()).encode()
    files[f"{info}/WHEEL"] = WHEEL.format(tags="\n".join(f"Tag: {t}" for t in expand(tag))).encode()
    documents = tree / "share/doc/tcc"
    for p in sorted(p for p in documents.rglob("*") if p.is_file()):
        files[f"{info}/licenses/{p.relative_to(documents)}"] = p.read_bytes()
    return f"tcc-{version}-{tag}", info, files


def expand(tag):
    """The tags that a compressed one stands for."""
    return ("-".join(parts) for parts in itertools.product(*(part.split(".") for part in tag.split("-"))))


def row(name, data):
    """A file's line in the list."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def main(tree, seconds, folder):
    name, info, files = read_tree(pathlib.Path(tree))
    record = f"{info}/RECORD"
    files[record] = ("".join(row(*f) for f in files.items()) + f"{record},,\n").encode()
    path = pathlib.Path(folder, f"{name}.whl")
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as wheel:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, max(time.gmtime(int(seconds))[:6], (1980, 1, 1, 0, 0, 0)))
            entry.external_attr = (0o100755 if ".so" in name else 0o100644) << 16
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED, int(os.environ.get("TCC_ZIP_LEVEL", "9")))
    print(path)


main(*sys.argv[1:])
