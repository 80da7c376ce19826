"""option_table.py SHARE TOOL...: every option in --help is in the manual page and in the completions of bash, zsh and
fish below SHARE; and what they have besides is in --help."""

import re
import subprocess
import sys

share, tools = sys.argv[1], sys.argv[2:]


def text_of(path):
    with open(f"{share}/{path}", encoding="utf-8") as f:
        return f.read()


def options_in_help(tool):
    shown = subprocess.run(tool.split(), capture_output=True, text=True, check=True).stdout
    options = set()
    for line in shown.splitlines():
        match = re.match(r"  (-\w)?(?:, )?(--[\w-]+)?(?=[\s=\[]|$)", line)
        options |= {o for o in match.groups() if o} if match else set()
    return options


def options_in_man(page):
    text = text_of(f"man/man1/{page}.1").replace("\\-", "-")
    return set(re.findall(r"^(?:.*, )?\\fB(-\w|--[\w-]+)\\fR", text, re.M)) | set(re.findall(r"^\\fB(-\w)\\fR", text, re.M))


def body_of(function, text):
    match = re.search(rf"^{function}\(\) ?\n?{{\n(.*?)^}}", text, re.M | re.S)
    assert match, function
    return match.group(1)


def options_in_bash(main, function):
    body = body_of(function, text_of(f"bash-completion/completions/{main}"))
    return set(re.search(r"kind=words words='([^']*)'\n    elif", body).group(1).split())


def options_in_zsh(main, function):
    body = body_of(function, text_of(f"zsh/site-functions/_{main}"))
    return set(re.findall(r"'\*(-\w|--[\w-]+)[+=\[]", body)) | {
        o for pair in re.findall(r"\{(-\w),(--[\w-]+)\}", body) for o in pair}


def options_in_fish(main, subcommand):
    options = set()
    for line in text_of(f"fish/vendor_completions.d/{main}.fish").splitlines():
        condition = re.search(r"-n '__fish_seen_subcommand_from (\w+)'", line)
        if (condition.group(1) if condition else "") == subcommand:
            line = re.sub(r" -d '.*", "", re.sub(r"-n '[^']*'", "", line))
            options |= {"-" + o for o in re.findall(r" -s (\w)\b", line)}
            options |= {"--" + o for o in re.findall(r" -l ([\w-]+)", line)}
    return options


for tool in tools:
    main, _, subcommand = tool.partition(" ")
    function = "_" + re.sub(r"\W", "_", tool)
    expected = options_in_help(tool + " --help")
    assert {"-h", "--help", "--version"} <= expected, expected
    found = {
        "man": options_in_man(tool.replace(" ", "-")),
        "bash": options_in_bash(main, function),
        "zsh": options_in_zsh(main, function),
        "fish": options_in_fish(main, subcommand),
    }
    for where, options in found.items():
        assert options == expected, f"{tool}: {where} and --help differ by {sorted(options ^ expected)}"
    print(f"{tool}: {len(expected)} options")
