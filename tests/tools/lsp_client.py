"""A client of the Language Server Protocol, as an editor is one, for tests.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import subprocess

URI = "file:///tmp/a.tile"


class Client:
    def __init__(self, *options):
        self.server = subprocess.Popen(["tcc", "lsp", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.number = 0
        self.diagnostics = {}

    def send_text(self, text):
        text = text.encode()
        self.server.stdin.write(b"Content-Length: %d\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n" % len(text) + text)
        self.server.stdin.flush()

    def send(self, **message):
        self.send_text(json.dumps({"jsonrpc": "2.0", **message}))

    def receive(self):
        length = None
        while (line := self.server.stdout.readline().strip()):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        assert length is not None, "the server ended"
        message = json.loads(self.server.stdout.read(length))
        assert message["jsonrpc"] == "2.0", message
        if message.get("method") == "textDocument/publishDiagnostics":
            self.diagnostics[message["params"]["uri"]] = message["params"]["diagnostics"]
        return message

    def request(self, method, **params):
        """The response, after what the server says before it."""
        self.number += 1
        self.send(id=self.number, method=method, params=params)
        while (message := self.receive()).get("id") != self.number:
            pass
        return message

    def result(self, method, **params):
        return self.request(method, **params)["result"]

    def notify(self, method, **params):
        self.send(method=method, params=params)

    def start(self):
        capabilities = self.result("initialize", processId=None, rootUri=None, capabilities={})["capabilities"]
        self.notify("initialized")
        return capabilities

    def open(self, text, uri=URI):
        """Gives the diagnostics of a text."""
        self.notify("textDocument/didOpen", textDocument={"uri": uri, "languageId": "tile", "version": 1, "text": text})
        self.receive()
        return self.diagnostics[uri]

    def change(self, text, uri=URI):
        self.notify("textDocument/didChange", textDocument={"uri": uri, "version": 2}, contentChanges=[{"text": text}])
        self.receive()
        return self.diagnostics[uri]

    def at(self, method, line, character, uri=URI):
        return self.result("textDocument/" + method, textDocument={"uri": uri}, position={"line": line, "character": character})

    def stop(self):
        """Gives the exit status."""
        assert self.result("shutdown") is None
        self.notify("exit")
        self.server.stdin.close()
        return self.server.wait(10)
