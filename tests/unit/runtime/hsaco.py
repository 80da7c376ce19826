"""Makes a code object without code of a manifest: hsaco.py MANIFEST.json OUT [NAME=VALUE...]

It has what a loader looks at: the architecture in the header's flags, a descriptor for every entry,
the metadata of the kernels, the manifest in its note. (AMDGPU usage, "ELF Code Object", "Code Object
Metadata", "Kernel Descriptor".) NAME=VALUE changes one thing:

    arch=gfx1200     another architecture than the manifest's target
    note=0           no manifest
    kernarg=N        N bytes of parameters in every descriptor
    type=1           the ELF file's type: 1 is one that is not linked
    target=gfx1100   the manifest, which may be NVIDIA's, without the variants that have tensor maps,
                     for this target
    json=FILE        writes that manifest there

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import struct
import sys

MACHINES = {"gfx1100": 0x41, "gfx1101": 0x46, "gfx1102": 0x47, "gfx1103": 0x44, "gfx1150": 0x43,
            "gfx1151": 0x4A, "gfx1200": 0x48, "gfx1201": 0x4E}


def pack(value):
    """The value as MessagePack."""
    if isinstance(value, dict):
        return b"\xdf" + struct.pack(">I", len(value)) + b"".join(
            pack(k) + pack(v) for k, v in value.items())
    if isinstance(value, list):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(pack, value))
    if isinstance(value, str):
        text = value.encode()
        return (bytes([0xA0 | len(text)]) if len(text) < 32 else b"\xd9" + bytes([len(text)])) + text
    return bytes([value]) if value < 128 else b"\xce" + struct.pack(">I", value)


def padded(data, align=4):
    return data + bytes(-len(data) % align)


def note(name, kind, desc):
    name = name.encode() + b"\0"
    return struct.pack("<3I", len(name), len(desc), kind) + padded(name) + padded(desc)


def arguments(params):
    """The metadata of a kernel's parameters, and their bytes."""
    result, offset = [], 0
    for param in params:
        kind, name = next(iter(param.items()))  # access and bytes may follow
        size = 8 if kind in ("pointer", "workspace") else 4
        offset += -offset % size
        result.append({".name": str(name), ".offset": offset, ".size": size,
                       ".value_kind": "global_buffer" if size == 8 else "by_value"})
        offset += size
    return result, offset


def metadata(arch, entries):
    kernels = []
    for entry in entries:
        args, size = arguments(entry["params"])
        kernels.append({".name": entry["launch"], ".symbol": entry["launch"] + ".kd",
                        ".args": args, ".kernarg_segment_size": size,
                        ".kernarg_segment_align": 8, ".private_segment_fixed_size": 0,
                        ".group_segment_fixed_size": entry["smem_bytes"],
                        ".wavefront_size": 32, ".sgpr_count": 32, ".vgpr_count": 128,
                        ".max_flat_workgroup_size": entry["block"],
                        ".reqd_workgroup_size": [entry["block"], 1, 1]})
    return {"amdhsa.version": [1, 2], "amdhsa.target": "amdgcn-amd-amdhsa--" + arch,
            "amdhsa.kernels": kernels}


def code_object(manifest, text, options):
    arch = options.get("arch", manifest["target"])
    entries = [s for kernel in manifest["kernels"] for v in kernel["variants"] for s in v["steps"]
               if "launch" in s]
    names, symbols, descriptors = b"\0", bytes(24), b""
    sections = [("", 0, b"", 0, 0)]  # name, type, data, link, entry size
    base = 64 + 2 * 56
    for entry in entries:
        size = int(options.get("kernarg", arguments(entry["params"])[1]))
        symbols += struct.pack("<IBBHQQ", len(names), 0x11, 3, 1, base + len(descriptors), 64)
        names += entry["launch"].encode() + b".kd\0"
        descriptors += struct.pack("<3I", entry["smem_bytes"], 0, size) + bytes(52)
    sections.append((".rodata", 1, descriptors, 0, 0))
    sections.append((".note", 7, note("AMDGPU", 32, pack(metadata(arch, entries))), 0, 0))
    sections.append((".dynstr", 3, names, 0, 0))
    sections.append((".dynsym", 11, symbols, 3, 24))
    if options.get("note", "1") != "0":
        sections.append((".note.tcc", 7, note("tcc", 1, text), 0, 0))
    sections.append((".shstrtab", 3, b"", 0, 0))
    section_names = b"".join(name.encode() + b"\0" for name, *_ in sections)
    sections[-1] = (".shstrtab", 3, section_names, 0, 0)

    body, rows, name_at, places = b"", b"", 0, {}
    for name, kind, data, link, entry_size in sections:
        body = padded(body, 8)
        at = base + len(body)
        places[name] = (at, len(data))
        rows += struct.pack("<IIQQQQIIQQ", name_at, kind, 0, at, at, len(data), link, 0,
                            4 if kind == 7 else 8, entry_size)
        name_at += len(name) + 1
        body += data
    body = padded(body, 8)
    loaded = base + len(body)
    segments = struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, loaded, loaded, 4096)
    at, size = places[".note"]
    segments += struct.pack("<IIQQQQQQ", 4, 4, at, at, at, size, size, 4)
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01\x40\x04", int(options.get("type", 3)),
                       224, 1, 0, 64, loaded, MACHINES[arch], 64, 56, 2, 64, len(sections),
                       len(sections) - 1)
    return head + segments + body + rows


def main(source, out, *changes):
    with open(source, "rb") as file:
        text = file.read()
    options = dict(change.split("=", 1) for change in changes)
    manifest = json.loads(text)
    if "target" in options:
        manifest["target"] = options["target"]
        for kernel in manifest["kernels"]:
            kernel["variants"] = [v for v in kernel["variants"]
                                  if not any("tensor_map" in param for step in v["steps"]
                                             for param in step.get("params", []))]
        text = json.dumps(manifest).encode()
    if "json" in options:
        with open(options["json"], "wb") as file:
            file.write(text)
    image = code_object(manifest, text, options)
    with open(out, "wb") as file:
        file.write(image)


main(*sys.argv[1:])
