"""What `tcc lsp` answers to an editor.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import subprocess
import sys

from lsp_client import URI, Client

PROGRAM = """\
// C = relu(A * B + bias), \U0001f642 and ä in front: 𝔸
const TN = 256;
kernel matmul(A: f16[M, K], B: f16[K, N], bias: f32[N]) -> (C: f16[M, N])
{
    /* \U0001f642 */ acc[m, n] = sum(k) A[m, k] * B[k, n];
    C[m, n]   = relu(acc[m, n] + bias[n]);
}

schedule matmul for sm_90a
{
    tile       m 128, n TN, k 64;
    stages     4;
    warpgroups 2;
}
"""
LINES = PROGRAM.split("\n")


def units(text):
    return len(text.encode("utf-16-le")) // 2


def place(line, word, nth=0):
    """The line and the UTF-16 column of a word's n-th occurrence in a line."""
    at = -1
    for _ in range(nth + 1):
        at = LINES[line].index(word, at + 1)
    return line, units(LINES[line][:at])


def text_at(r):
    """What a range holds."""
    assert r["start"]["line"] == r["end"]["line"], r
    line = LINES[r["start"]["line"]].encode("utf-16-le")
    return line[2 * r["start"]["character"]:2 * r["end"]["character"]].decode("utf-16-le")


def has_lifecycle():
    c = Client("--stdio")
    assert c.request("textDocument/hover")["error"]["code"] == -32002
    capabilities = c.start()
    assert capabilities["textDocumentSync"] == 1 and capabilities["positionEncoding"] == "utf-16"
    assert all(capabilities[name] for name in ("hoverProvider", "definitionProvider", "documentFormattingProvider"))
    assert c.request("textDocument/rename")["error"]["code"] == -32601
    c.notify("$/cancelRequest", id=1)
    c.notify("textDocument/didSave", textDocument={"uri": URI})
    c.send_text("{")
    assert c.receive()["error"]["code"] == -32700
    c.send(id="text", method="textDocument/hover", params={"textDocument": {"uri": "file:///none"}})
    assert c.receive() == {"jsonrpc": "2.0", "id": "text", "result": None}
    assert c.result("shutdown") is None
    assert c.request("textDocument/hover")["error"]["code"] == -32600
    c.notify("exit")
    assert c.server.wait(10) == 0
    c = Client()
    c.start()
    c.server.stdin.close()
    assert c.server.wait(10) == 2  # no shutdown
    for junk in (b"hello\r\n\r\n", b"Content-Length: x\r\n\r\n{}", b"Content-Length: 99\r\n\r\n{}", b"Content-Length: 99999999999\r\n\r\n"):
        done = subprocess.run(["tcc", "lsp"], input=junk, capture_output=True, check=False)
        assert done.returncode == 1 and b"syntax error" in done.stderr, (junk, done)


def has_diagnostics(c):
    assert c.open(PROGRAM) == []
    wrong = PROGRAM.replace("bias[n]);", "bias[m]) + Z;")
    found = c.change(wrong)
    LINES[:] = wrong.split("\n")
    assert [(d["severity"], text_at(d["range"])) for d in found][-1] == (1, "Z"), found
    assert all(d["source"] == "tcc" for d in found)
    notes = [n for d in found for n in d["relatedInformation"]]
    assert any(text_at(n["location"]["range"]) == "bias" and n["location"]["uri"] == URI for n in notes), notes
    # of the passes that choose schedules; for every target that has one
    found = c.change(PROGRAM.replace("m 128", "m 100") + "schedule matmul for gfx1100 { tile m 128, n 8, k 64; waves 32; }")
    assert {d["range"]["start"]["line"] for d in found} == {10, 14}, found
    assert c.change(PROGRAM) == []
    LINES[:] = PROGRAM.split("\n")
    assert "expected" in c.open("kernel", "file:///other")[0]["message"]
    c.notify("textDocument/didClose", textDocument={"uri": "file:///other"})
    c.receive()
    assert c.diagnostics == {URI: [], "file:///other": []}


def shown(c, line, word, nth=0):
    hover = c.at("hover", *place(line, word, nth))
    if hover:
        assert text_at(hover["range"]) == word, hover
        assert hover["contents"]["kind"] == "markdown"
    return hover and hover["contents"]["value"]


def has_hover(c):
    assert "A: f16[M, K]" in shown(c, 4, "A")
    assert "acc[m, n]: f32" in shown(c, 5, "acc")
    assert "k: 0 to K - 1" in shown(c, 4, "k")
    assert "const TN = 256" in shown(c, 10, "TN")
    assert "max(x, 0)" in shown(c, 5, "relu")
    assert "a dimension" in shown(c, 2, "K")
    assert "kernel matmul(A: f16[M, K], B: f16[K, N], bias: f32[N]) -> (C: f16[M, N])" in shown(c, 2, "matmul")
    for line, word in ((2, "matmul"), (8, "matmul"), (8, "sm_90a"), (11, "stages")):  # with the schedule in force
        text = shown(c, line, word)
        assert "schedule matmul for sm_90a" in text and "producer" in text, text
    assert "buffers of the pipeline" in shown(c, 11, "stages")
    assert c.at("hover", 3, 0) is None and c.at("hover", 999, 999) is None


def defined(c, line, word, nth=0):
    found = c.at("definition", *place(line, word, nth))
    assert found is None or found["uri"] == URI
    return found and (found["range"]["start"]["line"], found["range"]["start"]["character"], text_at(found["range"]))


def has_definitions(c):
    assert defined(c, 4, "A") == (*place(2, "A"), "A")
    assert defined(c, 5, "acc") == (*place(4, "acc"), "acc")
    assert defined(c, 4, "k") == (*place(2, "K"), "K")  # an index, by the dimension that it ranges over
    assert defined(c, 2, "K", 1) == (*place(2, "K"), "K")
    assert defined(c, 8, "matmul") == (*place(2, "matmul"), "matmul")
    assert defined(c, 10, "TN") == (*place(1, "TN"), "TN")
    assert defined(c, 10, "m") == (*place(2, "M"), "M")
    assert defined(c, 5, "relu") is None and defined(c, 4, "sum") is None


def offered(c, text):
    """The labels where a text ends."""
    c.change(text)
    lines = text.split("\n")
    return [item["label"] for item in c.at("completion", len(lines) - 1, units(lines[-1]))]


def has_completion(c):
    head = PROGRAM.split("schedule")[0]
    keys = offered(c, head + "schedule matmul for sm_90a\n{\n    ")
    assert {"tile", "stages", "warpgroups", "swizzle"} <= set(keys) and "waves" not in keys, keys
    assert "waves" in offered(c, head + "schedule matmul for gfx1100 { st")
    assert offered(c, head + "schedule matmul for sm_90a { stages 4; producer ") == ["none", "warp", "warpgroup"]
    assert {"instr", "warps"} <= set(keys), keys  # with instr mma it has those of sm_90
    assert offered(c, head + "schedule matmul for sm_90a { instr ") == ["wgmma", "mma", "fma", "naive"]
    assert offered(c, head + "schedule matmul for gfx1100 { instr ") == ["wmma", "naive"]
    assert set(offered(c, head + "schedule matmul for sm_90a { tile m 64, ")) == {"m", "n", "k"}
    assert "gfx1100" in offered(c, head + "schedule matmul for ")
    assert offered(c, head + "schedule ") == ["matmul"] and offered(c, head + "schedule matmul ") == ["for"]
    assert offered(c, head) == offered(c, head + "ker") == ["kernel", "schedule", "const"]
    assert {"f16", "bf16", "i8"} <= set(offered(c, "kernel k(A: "))
    names = offered(c, PROGRAM.split("    C[m, n]")[0])
    assert {"A", "bias", "acc", "m", "sum", "relu", "exp"} <= set(names), names
    c.change(PROGRAM)


def has_formatting(c):
    c.change(PROGRAM.replace("    ", "\t"))
    [edit] = c.result("textDocument/formatting", textDocument={"uri": URI}, options={"tabSize": 4, "insertSpaces": True})
    done = subprocess.run(["tcc", "fmt", "-"], input=PROGRAM.encode(), capture_output=True, check=True)
    assert edit["newText"] == done.stdout.decode()
    assert edit["range"]["start"] == {"line": 0, "character": 0} and edit["range"]["end"]["line"] >= len(LINES) - 1
    c.change("kernel")
    assert c.result("textDocument/formatting", textDocument={"uri": URI}, options={}) is None


def takes_any_text(c):
    """Every beginning of a program, which is what an editor sends while it is written."""
    for i in range(0, len(PROGRAM), 3):
        c.change(PROGRAM[:i])
        line = PROGRAM[:i].count("\n")
        c.at("hover", line, 3)
        c.at("definition", line, 9)
        c.at("completion", line, 99)


has_lifecycle()
client = Client()
client.start()
for check in (has_diagnostics, has_hover, has_definitions, has_completion, has_formatting, takes_any_text):
    check(client)
assert client.stop() == 0
print("all right")
sys.exit(0)
