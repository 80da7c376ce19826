"""Tests of the assembly reader, the wait-counter check and the cost table.

Every wait of the two kernels below is needed: a mutant that lacks one, or waits for one operation
less, must be reported.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import assembly
import cost
import waits

HERE = os.path.dirname(os.path.abspath(__file__))

METADATA = """
	.amdgpu_metadata
---
amdhsa.kernels:
  - .args:
      - .name:           K
        .offset:         0
        .size:           4
        .value_kind:     by_value
    .group_segment_fixed_size: 4096
    .max_flat_workgroup_size: {threads}
    .name:           k
    .private_segment_fixed_size: {scratch}
    .sgpr_count:     26
    .sgpr_spill_count: 0
    .symbol:         k.kd
    .uses_dynamic_stack: false
    .vgpr_count:     {vgprs}
    .vgpr_spill_count: {spills}
    .wavefront_size: {wave}
amdhsa.target:   amdgcn-amd-amdhsa--{target}
...
	.end_amdgpu_metadata
"""


def module(target, body, wave=32, vgprs=96, threads=128, scratch=0, spills=0):
    """The text of a file with one kernel."""
    values = {key: value for key, value in locals().items() if key != "body"}
    return (f'\t.amdgcn_target "amdgcn-amd-amdhsa--{target}"\n\t.text\nk:  ; @k\n; %bb.0:\n'
            f"{body}\t.section\t.rodata,\"a\",@progbits\n\t.amdhsa_kernel k\n" +
            METADATA.format(**values))


def kernel(target, body, **values):
    return assembly.parse(module(target, body, **values).split("\n"))[0]


def problems(target, body, **values):
    return [text for _, text in waits.check(kernel(target, body, **values))]


# A tile goes from global memory through registers and LDS into a product, one iteration ahead.
GFX11 = """\
	s_load_b128 s[4:7], s[0:1], 0x0
	s_load_b32 s2, s[0:1], 0x10
	s_waitcnt lgkmcnt(0)
	v_mov_b32_e32 v0, s2
	buffer_load_b128 v[8:11], v0, s[4:7], 0 offen
	buffer_load_b128 v[12:15], v0, s[4:7], 0 offen offset:16
.LBB0_1:  ; %loop
	s_waitcnt vmcnt(1)
	ds_store_b128 v1, v[8:11]
	s_waitcnt vmcnt(0)
	ds_store_b128 v1, v[12:15] offset:16
	s_waitcnt lgkmcnt(0)
	s_barrier
	buffer_load_b128 v[8:11], v0, s[4:7], 0 offen
	buffer_load_b128 v[12:15], v0, s[4:7], 0 offen offset:16
	ds_load_b128 v[16:19], v2
	ds_load_b128 v[20:23], v2 offset:16
	ds_load_2addr_b64 v[24:27], v3 offset1:1
	ds_load_2addr_b64 v[28:31], v3 offset0:2 offset1:3
	s_waitcnt lgkmcnt(0)
	s_delay_alu instid0(VALU_DEP_1)
	v_wmma_f32_16x16x16_f16 v[40:47], v[16:23], v[24:31], v[40:47]
	s_add_i32 s3, s3, 16
	s_cmp_lt_i32 s3, s2
	s_barrier
	s_cbranch_scc1 .LBB0_1
; %bb.2:
	s_waitcnt vmcnt(0)
	v_dual_add_f32 v8, v8, v12 :: v_dual_mov_b32 v9, 0
	buffer_store_b32 v8, v0, s[4:7], 0 offen
	s_endpgm
"""
GFX12 = """\
	s_load_b128 s[4:7], s[0:1], 0x0
	s_wait_kmcnt 0x0
	buffer_load_b128 v[8:11], v0, s[4:7], null offen
	buffer_load_b128 v[12:15], v0, s[4:7], null offen offset:16
.LBB0_1:  ; %loop
	s_wait_loadcnt 0x1
	ds_store_b128 v1, v[8:11]
	s_wait_loadcnt 0x0
	ds_store_b128 v1, v[12:15] offset:16
	s_wait_dscnt 0x0
	s_barrier_signal -1
	s_barrier_wait -1
	global_inv scope:SCOPE_SE
	buffer_load_b128 v[8:11], v0, s[4:7], null offen
	buffer_load_b128 v[12:15], v0, s[4:7], null offen offset:16
	ds_load_b128 v[16:19], v2
	ds_load_b128 v[20:23], v2 offset:16
	s_wait_dscnt 0x0
	v_wmma_f32_16x16x16_f16 v[40:47], v[16:19], v[20:23], v[40:47]
	s_wait_alu depctr_sa_sdst(0)
	s_barrier_signal -1
	s_barrier_wait -1
	s_cbranch_scc1 .LBB0_1
	ds_load_b32 v16, v2
	s_wait_loadcnt_dscnt 0x0
	v_fma_f32 v8, v8, v12, v16
	buffer_store_b32 v8, v0, s[4:7], null offen
	s_endpgm
"""


class Reader(unittest.TestCase):
    def test_registers(self):
        self.assertEqual(assembly.registers("v5, s[2:3], vcc_lo, 0x10, ttmp9"),
                         {("v", 5), ("s", 2), ("s", 3), ("vcc_lo", 0), ("ttmp", 9)})
        self.assertEqual(assembly.registers("v3.l, -v4.h, |v5|"), {("v", 3), ("v", 4), ("v", 5)})
        self.assertEqual(assembly.registers("null, off, scope:SCOPE_SE, src_v3"), set())
        self.assertEqual(assembly.registers("s[6]"), {("s", 6)})

    def test_metadata_is_the_kernels_not_its_arguments(self):
        found = kernel("gfx1100", "\ts_endpgm\n", wave=64)
        self.assertEqual((found.name, found.target, found.wave), ("k", "gfx1100", 64))
        self.assertNotIn("offset", found.metadata)

    def test_blocks_and_loops(self):
        found = kernel("gfx1100", GFX11)
        self.assertEqual([b.successors for b in found.blocks], [[1], [1, 2], []])
        self.assertEqual(found.loops(), [{1}])
        self.assertEqual(assembly.count(found.inner_loop(), "v_wmma"), 1)

    def test_the_inner_loop_is_the_innermost_with_most_products(self):
        product = "\tv_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]\n"
        body = (".L1:\n" + product + ".L2:\n" + product * 2 + "\ts_cbranch_scc1 .L2\n"
                + "\ts_cbranch_vccnz .L1\n.L3:\n" + product + "\ts_cbranch_scc0 .L3\n\ts_endpgm\n")
        found = kernel("gfx1100", body)
        self.assertEqual(found.loops(), [{0, 1, 2}, {1}, {3}])
        self.assertEqual(assembly.count(found.inner_loop(), "v_wmma"), 2)

    def test_refusals(self):
        for body in ("\ts_branch .L9\n", "\ts_swappc_b64 s[0:1], s[2:3]\n"):
            with self.assertRaisesRegex(assembly.AssemblyError, "line 5"):
                kernel("gfx1100", body)
        with self.assertRaisesRegex(assembly.AssemblyError, "ends inside"):
            text = module("gfx1100", "\ts_endpgm\n").replace(".section", ".ignored")
            assembly.parse(text.split("\n"))


class Waits(unittest.TestCase):
    def test_complete(self):
        self.assertEqual(problems("gfx1100", GFX11), [])
        self.assertEqual(problems("gfx1201", GFX12), [])

    def assert_each_wait_is_needed(self, target, text):
        lines = text.split("\n")
        seen = 0
        for at, line in enumerate(lines):
            wait = re.match(r"\ts_wait_?(?:cnt|\w+cnt)\b.*?(0x)?(\d)\)?$", line)
            if not wait:
                continue
            seen += 1
            weaker = line[: wait.start(2)] + str(int(wait[2]) + 1) + line[wait.end(2):]
            for mutant in ([], [weaker]):
                broken = "\n".join(lines[:at] + mutant + lines[at + 1:])
                self.assertTrue(problems(target, broken), f"{line} -> {mutant}")
        return seen

    def test_each_wait_is_needed(self):
        self.assertEqual(self.assert_each_wait_is_needed("gfx1100", GFX11), 6)
        self.assertEqual(self.assert_each_wait_is_needed("gfx1200", GFX12), 6)

    def test_what_is_reported(self):
        broken = GFX11.replace("\ts_waitcnt vmcnt(1)\n", "")
        self.assertEqual(waits.check(kernel("gfx1100", broken)), [
            (12, f"v{n} may still be loaded (vmcnt): ds_store_b128 v1, v[8:11]")
            for n in range(8, 12)])
        broken = GFX12.replace("0x1\n\tds_store", "0x2\n\tds_store")
        self.assertEqual(len(problems("gfx1200", broken)), 4)

    def test_a_load_around_the_loop(self):
        body = (".L1:\n\ts_waitcnt vmcnt({})\n\tv_add_f32_e32 v9, v9, v1\n"
                "\tbuffer_load_b32 v1, v0, s[4:7], 0 offen\n"
                "\tbuffer_load_b32 v2, v0, s[4:7], 0 offen\n"
                "\ts_cbranch_scc1 .L1\n\ts_endpgm\n")
        self.assertEqual(problems("gfx1100", body.format(1)), [])
        self.assertTrue(problems("gfx1100", body.format(2)))

    def test_stores_count_apart(self):
        body = ("\tbuffer_load_b32 v1, v0, s[4:7], 0 offen\n"
                "\tbuffer_store_b32 v2, v0, s[4:7], 0 offen\n"
                "\ts_waitcnt vmcnt(1)\n\tv_mov_b32_e32 v3, v1\n\ts_endpgm\n")
        self.assertTrue(problems("gfx1100", body))
        self.assertTrue(problems("gfx1200", body.replace("s_waitcnt vmcnt(1)", "s_wait_loadcnt 0x1")
                                 .replace(", 0 offen", ", null offen")))

    def test_scalar_loads_come_in_any_order(self):
        body = ("\ts_load_b32 s4, s[0:1], 0x0\n\ts_load_b32 s5, s[0:1], 0x4\n"
                "\ts_waitcnt lgkmcnt({})\n\ts_add_i32 s6, s4, 1\n\ts_endpgm\n")
        self.assertEqual(problems("gfx1100", body.format(0)), [])
        self.assertTrue(problems("gfx1100", body.format(1)))

    def test_scalar_loads_do_not_hide_lds_loads(self):
        body = ("\tds_load_b32 v1, v0\n\ts_load_b32 s4, s[0:1], 0x0\n"
                "\ts_waitcnt lgkmcnt(1)\n\tv_mov_b32_e32 v2, v1\n\ts_endpgm\n")
        self.assertTrue(problems("gfx1100", body))

    def test_overwriting(self):
        load = "\tbuffer_load_b32 v1, v0, s[4:7], 0 offen\n"
        end = "\ts_endpgm\n"
        self.assertEqual(problems("gfx1100", load + load + end), [])  # in order
        self.assertTrue(problems("gfx1200", (load + load + end).replace(", 0 off", ", null off")))
        lds = "\tds_load_b32 v1, v0\n"
        self.assertEqual(problems("gfx1200", lds + lds + end), [])
        self.assertTrue(problems("gfx1100", load + "\tv_mov_b32_e32 v1, 0\n" + end))
        self.assertTrue(problems("gfx1100", load + "\tds_load_b32 v1, v2\n" + end))
        self.assertTrue(problems("gfx1100", load + load.replace("v0", "v1") + end))  # an address
        load = "\ts_load_b32 s4, s[0:1], 0x0\n"
        self.assertTrue(problems("gfx1100", load + load + end))

    def test_paths_join(self):
        body = ("\ts_cbranch_vccz .L2\n\tds_load_b32 v1, v0\n\ts_cbranch_scc1 .L2\n"
                "\ts_waitcnt lgkmcnt(0)\n.L2:\n\tv_mov_b32_e32 v2, v1\n\ts_endpgm\n")
        self.assertTrue(problems("gfx1100", body))
        self.assertEqual(problems("gfx1100", body.replace("\ts_cbranch_scc1 .L2\n", "")), [])

    def test_a_counter_counts_to_63(self):
        load = "\tbuffer_load_b32 {}, v0, s[4:7], 0 offen\n"
        for more, found in ((62, 1), (63, 0)):
            body = (load.format("v1") + load.format("v2") * more
                    + "\tv_mov_b32_e32 v3, v1\n\ts_endpgm\n")
            self.assertEqual(len(problems("gfx1100", body)), found, more)

    def test_branches_read_vcc(self):
        body = "\ts_load_b64 vcc, s[0:1], 0x0\n\ts_cbranch_vccz .L1\n.L1:\n\ts_endpgm\n"
        self.assertEqual(len(problems("gfx1100", body)), 2)

    def test_barriers(self):
        for op in ("ds_store_b32 v1, v2", "ds_load_b32 v1, v2", "ds_add_u32 v1, v2"):
            body = f"\t{op}\n\ts_barrier\n\ts_endpgm\n"
            self.assertTrue(problems("gfx1100", body), op)
            waited = body.replace("\ts_barrier", "\ts_waitcnt lgkmcnt(0)\n\ts_barrier")
            self.assertEqual(problems("gfx1100", waited), [])
            self.assertTrue(problems("gfx1200", body.replace("barrier", "barrier_signal -1")), op)
        self.assertEqual(problems("gfx1200", "\tds_store_b32 v1, v2\n\ts_barrier_wait -1\n"
                                             "\ts_endpgm\n"), [])

    def test_encoded_waits(self):
        def counts(text, gfx):
            return waits.waited(assembly.parse_instruction(1, text), gfx)
        self.assertEqual(counts("s_waitcnt vmcnt(3) lgkmcnt(1)", "gfx11"),
                         {"vmcnt": 3, "lgkmcnt": 1})
        self.assertEqual(counts("s_waitcnt 0x3f7", "gfx11"), {"vmcnt": 0, "lgkmcnt": 63})
        self.assertEqual(counts("s_waitcnt_vscnt null, 0x0", "gfx11"), {"vscnt": 0})
        self.assertEqual(counts("s_wait_loadcnt_dscnt 0x102", "gfx12"),
                         {"loadcnt": 1, "dscnt": 2})
        self.assertEqual(counts("s_wait_storecnt_dscnt 0x0", "gfx12"),
                         {"storecnt": 0, "dscnt": 0})
        self.assertEqual(counts("s_waitcnt_depctr depctr_vm_vsrc(0)", "gfx11"), {})
        self.assertEqual(counts("s_wait_alu depctr_sa_sdst(0)", "gfx12"), {})


class Costs(unittest.TestCase):
    def test_classes_and_bytes(self):
        found = cost.Cost(kernel("gfx1100", GFX11))
        self.assertEqual(found.instructions, 19)
        self.assertEqual({k: v for k, v in found.classes.items() if v}, {
            "v_wmma": 1, "LDS reads": 4, "LDS writes": 2, "global reads": 2, "SALU": 2,
            "waits": 4, "barriers": 2, "branches": 1, "other": 1})
        self.assertEqual((found.lds_bytes_read, found.global_bytes_read), (4 * 512, 2 * 512))
        self.assertAlmostEqual(found.share(), 100 / 19)

    def test_bytes_a_lane(self):
        for text, size in (("ds_load_2addr_b64 v[0:3], v4", 16), ("buffer_load_u16 v0, v1", 2),
                           ("ds_load_u16_d16_hi v0, v1", 2), ("buffer_load_d16_b16 v0, v1", 2),
                           ("global_load_b96 v[0:2], v[3:4], off", 12), ("ds_load_i8 v0, v1", 1),
                           ("ds_load_2addr_stride64_b32 v[0:1], v4", 8)):
            instruction = assembly.parse_instruction(1, text)
            self.assertEqual(cost.bytes_a_lane(instruction), size, text)
        with self.assertRaises(assembly.AssemblyError):
            cost.bytes_a_lane(assembly.parse_instruction(7, "buffer_load_format_xy v0, v1"))

    def test_waves_by_registers(self):
        # What LLVM 22 prints as "Occupancy" of kernels with so many registers.
        for target, wave, vgprs, waves in (
                ("gfx1100", 32, 96, 16), ("gfx1100", 32, 97, 12), ("gfx1100", 32, 250, 5),
                ("gfx1151", 32, 130, 10), ("gfx1102", 32, 97, 9), ("gfx1103", 32, 130, 7),
                ("gfx1150", 32, 250, 4), ("gfx1201", 32, 193, 7), ("gfx1100", 64, 97, 7),
                ("gfx1200", 64, 145, 4), ("gfx1102", 64, 250, 2), ("gfx1103", 64, 24, 16)):
            found = cost.Cost(kernel(target, GFX11, wave=wave, vgprs=vgprs))
            self.assertEqual(found.waves_by_registers(), waves, (target, wave, vgprs))

    def test_waves_of_whole_workgroups(self):
        def waves(**values):
            return cost.Cost(kernel("gfx1100", GFX11, **values))
        self.assertEqual(waves(vgprs=250, threads=256).waves(), 4)  # 20 waves are 2 workgroups
        self.assertEqual(waves(vgprs=250, threads=128).waves(), 5)
        found = waves(vgprs=96, threads=128)
        found.lds = 40 << 10  # 3 workgroups of 4 waves in 128 KiB
        self.assertEqual(found.waves(), 3)


class CommandLine(unittest.TestCase):
    def run_isa(self, text, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "k.s")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            got = subprocess.run([sys.executable, HERE + "/isa.py", path, *options],
                                 stdout=subprocess.PIPE, encoding="utf-8", check=False)
            return got.returncode, got.stdout.replace(path, "k.s")

    def test_numbers_of_products(self):
        text = module("gfx1100", GFX11)
        self.assertEqual(self.run_isa(text, "--wmma=1", "--loop-wmma=1"), (0, ""))
        self.assertEqual(self.run_isa(text, "--wmma=2"),
                         (1, "k.s: error: k: 1 v_wmma instead of 2\n"))
        self.assertEqual(self.run_isa(text, "--loop-wmma=3"),
                         (1, "k.s: error: k: 1 v_wmma in the inner loop instead of 3\n"))
        self.assertEqual(self.run_isa(text, "--kernel=j"), (1, "k.s: error: no such kernel\n"))

    def test_limits(self):
        text = module("gfx1100", GFX11)
        self.assertEqual(self.run_isa(text, "--min-share=5", "--max-lds-reads=4", "--min-waves=16"),
                         (0, ""))
        for option in ("--min-share=6", "--max-lds-reads=3.9", "--min-waves=17"):
            self.assertEqual(self.run_isa(text, option)[0], 1, option)

    def test_spills_and_scratch(self):
        self.assertIn(".vgpr_spill_count is 3", self.run_isa(module("gfx1100", GFX11, spills=3))[1])
        self.assertIn(".private_segment_fixed_size is 8",
                      self.run_isa(module("gfx1100", GFX11, scratch=8))[1])
        body = "\tscratch_store_b32 off, v1, s32\n\ts_endpgm\n"
        self.assertIn("k.s:5: error: k: 1 times scratch memory", self.run_isa(module("gfx1100", body))[1])

    def test_waterfall(self):
        body = (".LBB0_1:\n\tv_readfirstlane_b32 s4, v0\n\tv_readfirstlane_b32 s5, v1\n"
                "\tv_cmp_eq_u64_e32 vcc_lo, s[4:5], v[0:1]\n\ts_and_saveexec_b32 s8, vcc_lo\n"
                "\tbuffer_load_b32 v2, v3, s[4:7], 0 offen\n\ts_xor_b32 exec_lo, exec_lo, s8\n"
                "\ts_cbranch_execnz .LBB0_1\n\ts_endpgm\n")
        self.assertIn("a loop over the lanes", self.run_isa(module("gfx1100", body))[1])

    def test_documents(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "doc.md")

            def write(text):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            text = module("gfx1100", GFX11)
            write("no marks\n")
            self.assertEqual(self.run_isa(text, "--check=" + path)[0], 1)
            write("a\n<!-- isa costs -->\n\nold\n\n<!-- end of isa costs -->\nb\n")
            self.assertEqual(self.run_isa(text, "--check=" + path)[0], 1)
            self.assertEqual(self.run_isa(text, "--update=" + path)[0], 0)
            self.assertEqual(self.run_isa(text, "--check=" + path), (0, ""))
            with open(path, encoding="utf-8") as file:
                new = file.read()
            self.assertRegex(new, r"(?s)^a\n<!-- isa costs -->\n\n\| \| `k` \|\n.*\|\n\n<!-- end")
            self.assertTrue(new.endswith("\nb\n"))


if __name__ == "__main__":
    unittest.main()
