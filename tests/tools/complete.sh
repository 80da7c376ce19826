# complete.sh FILE FUNCTION WORD...: what a completion in FILE offers for the last word, one a line. Words are what
# bash makes of a line: '=' is one of its own.
source "$1"
complete_with=$2
shift 2
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
"$complete_with"
printf '%s\n' "${COMPREPLY[@]}"
