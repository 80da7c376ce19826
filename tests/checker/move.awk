# Moves the branch in a loop that has `what` in it to the end of the loop's body.
/^    scf.if/ { inside = 1; branch = ""; found = 0 }
inside {
    branch = branch $0 "\n"
    found = found || index($0, what)
    if ($0 ~ /^    }/) { inside = 0; if (found) last = branch; else printf "%s", branch }
    next
}
/^    scf.yield/ { printf "%s", last; last = "" }
{ print }
