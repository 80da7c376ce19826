# complete.zsh FOLDER LINE...: what zsh makes of each line with the completions in FOLDER, after the key Tab.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1= fpath+=($1); unsetopt prompt_cr prompt_sp; setopt no_beep no_auto_list
autoload -U compinit; compinit -u -D
complete-and-tell() { zle complete-word; print -r -- \$'\n'\"<\$BUFFER>\"; BUFFER=; zle accept-line }
zle -N complete-and-tell; bindkey '^I' complete-and-tell; print -r ready''-to-complete"
zpty -r shell output '*ready-to-complete*'
for line in "${@:2}"; do
    zpty -w -n shell "$line"$'\t'
    zpty -r shell output $'*\n<*>*'
    print -r -- "${${output##*$'\n<'}%>*}"
done
zpty -d shell
