#compdef duologue
# Completion of duologue's command line, for zsh.

_duologue() {
    # What a shell replaces is left to zsh, which keeps it in the line as it is typed.
    if [[ $PREFIX == [~$]* ]]; then
        _files
        return
    fi
    # The program is given the words as a command would get them, the last one up to the cursor.
    local -a typed=("${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}")
    local -a offers folders others
    local offer
    offers=("${(@f)$(_CLAP_IFS=$'\n' _CLAP_COMPLETE_INDEX=$((CURRENT - 1)) \
        DUOLOGUE_COMPLETE=zsh duologue -- "${typed[@]}" 2>/dev/null)}")
    for offer in $offers; do
        # A value, or one with a colon and its description. A folder is not followed by a space.
        if [[ $offer == */ && $offer != *[^\\]:* ]]; then
            folders+=("${offer%/}")
        else
            others+=("$offer")
        fi
    done
    local found=1
    (($#folders)) && _describe -V values folders -S / -r / && found=0
    (($#others)) && _describe -V values others && found=0
    return found
}

# Loaded as a function (fpath), the file is run for the first tab; sourced, it is not.
if [[ $funcstack[1] == _duologue ]]; then
    _duologue "$@"
else
    compdef _duologue duologue
fi
