# Completion of duologue's command line, for bash 3.2 and later.

_duologue_complete() {
    # A here-string and `read` below need the usual separators, also in a shell that has set others.
    local IFS=$' \t\n'
    local line=${COMP_LINE-} sign='^[=:@]+$' words=() index=0 typed= last= i word from

    # Bash takes each `=`, `:` and `@` in a word for a word of its own (COMP_WORDBREAKS). What touches in the line
    # is one word to the program.
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        word=${COMP_WORDS[i]}
        if ((i == COMP_CWORD)); then
            # Only what stands before the cursor is being completed.
            if [[ -n $line ]]; then
                from=$((${#COMP_LINE} - ${#line}))
                typed=$((COMP_POINT > from ? COMP_POINT - from : 0))
                typed=${COMP_LINE:from:typed}
                typed=${typed#"${typed%%[![:blank:]]*}"}
            else
                typed=$2
            fi
        fi
        if ((i > 0)) && [[ -n $line && $line != [[:blank:]]* && ($word =~ $sign || $last =~ $sign) ]]; then
            if ((i == COMP_CWORD)); then
                index=$((${#words[@]} - 1))
                typed=${words[index]}$typed
                words[index]=$typed
            else
                words[${#words[@]} - 1]+=$word
            fi
        elif ((i == COMP_CWORD)); then
            index=${#words[@]}
            words+=("$typed")
        else
            words+=("$word")
        fi
        line=${line#*"$word"}
        last=$word
    done

    # Readline replaces `$2`: what stands before it in the word stays, and a quote that is open is closed by readline.
    local kept=${typed%"$2"} is_quoted=
    [[ $kept == *[\"\'] ]] && is_quoted=1
    kept=${kept//[\"\'\\]/}
    for i in "${!words[@]}"; do
        words[i]=${words[i]//[\"\'\\]/}
    done

    local offered offer home special=$'*[][ \t"\'`$&|;<>(){}*?!#\\\\]*'
    COMPREPLY=()
    offered=$(_CLAP_IFS=$'\n' _CLAP_COMPLETE_INDEX=$index _CLAP_COMPLETE_COMP_TYPE=${COMP_TYPE-9} \
        DUOLOGUE_COMPLETE=bash duologue -- "${words[@]}" 2>/dev/null) || offered=
    while read -r offer; do
        offer=${offer#"$kept"}
        [[ -n $offer ]] || continue
        if [[ -z $is_quoted && $offer == $special ]]; then
            # A home that is quoted would be a folder called `~`.
            home=
            [[ $typed == '~/'* && $offer == '~/'* ]] && home='~/'
            printf -v offer '%s%q' "$home" "${offer#"$home"}"
        fi
        COMPREPLY+=("$offer")
    done <<<"$offered"

    # A folder, and an option with a value to come, are not followed by a space. Readline completes the name of a file
    # behind a variable, which the program does not know. Bash before 4 has no compopt.
    if [[ ! ${COMPREPLY[0]-} =~ [=/:]$ ]]; then
        compopt +o nospace 2>/dev/null
    fi
    if [[ ${#COMPREPLY[@]} -eq 0 && $typed == *\$* ]]; then
        compopt -o default 2>/dev/null
    fi
    return 0
}

if ((BASH_VERSINFO[0] > 4 || (BASH_VERSINFO[0] == 4 && BASH_VERSINFO[1] >= 4))); then
    complete -o nospace -o bashdefault -o nosort -F _duologue_complete duologue
else
    complete -o nospace -o bashdefault -o default -F _duologue_complete duologue
fi
