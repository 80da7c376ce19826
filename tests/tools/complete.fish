# complete.fish FOLDER LINE...: what fish offers for each line with the completions in FOLDER, one a line.
set -p fish_complete_path $argv[1]
for line in $argv[2..]
    complete -C $line | string split -f 1 \t
end
