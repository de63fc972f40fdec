# Completion of duologue's command line, for fish.

function __duologue_complete
    # The program is given the words as a command would get them, the last one up to the cursor.
    set -l typed (commandline --current-process --tokenize --cut-at-cursor)
    set -l token (commandline --current-token --cut-at-cursor)
    # A quote that is still open is closed. What can't be read is passed as it is.
    set -l last (string unescape -- $token; or string unescape -- $token\"; or string unescape -- $token\'; or echo $token)
    DUOLOGUE_COMPLETE=fish duologue -- $typed $last 2>/dev/null
end

complete --keep-order --exclusive --command duologue --arguments "(__duologue_complete)"
