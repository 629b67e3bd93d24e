#!/bin/bash
# trainer completions and trainer manual: what bash proposes is what the program takes, and the page is one
# that man takes without a warning. zsh and fish at least read theirs, where they are.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
cd "$scratch" || exit 1
"$TRAINER" completions bash >bash.sh || fail "completions bash: exit code $?"

# --- bash, as it cuts a line: at blanks, = and : ---
complete_line() { # the line up to the cursor; prints what is proposed
    bash --norc -c '. ./bash.sh
        line=$1
        COMP_LINE=$line COMP_POINT=${#line}
        COMP_WORDS=()
        for word in $line; do
            while [[ $word == *[=:]* ]]; do
                before=${word%%[=:]*}
                [ -z "$before" ] || COMP_WORDS+=("$before")
                word=${word#"$before"}
                COMP_WORDS+=("${word:0:1}")
                word=${word:1}
            done
            [ -z "$word" ] || COMP_WORDS+=("$word")
        done
        [[ $line == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _trainer
        printf "%s\n" "${COMPREPLY[@]}"' bash "$1" 2>complete.err | sort | tr '\n' ' '
    [ ! -s complete.err ] || fail "$1: $(cat complete.err)"
}
proposes() { # line, words expected, sorted
    local found
    found=$(complete_line "$1")
    [ "$found" = "$2 " ] || fail "$1 is completed to: $found, expected: $2"
}
listed() {
    "$TRAINER" list "$1" | sed -n "s/^  \($2[a-z0-9-]*\) .*/\1/p" | grep . | sort | tr '\n' ' ' | sed 's/ $//'
}
proposes 'trainer --str' '--strategy='
proposes 'trainer train --str' '--strategy='
proposes 'trainer bench --strat' '--strategies='
proposes 'trainer --strategy=async-' "$(listed strategies async-)"
proposes 'trainer --strategy=' "$(listed strategies '')"
proposes 'trainer --strategy async-' "$(listed strategies async-)"
proposes 'trainer train --quiet --model=' \
    "$({ listed models ''; echo; listed readers ''; } | tr ' ' '\n' | sort | tr '\n' ' ' | sed 's/^ //; s/ $//')"
proposes 'trainer --model=onnx:' 'file= head= weights='
proposes 'trainer --model=keras:head=' 'fit same'
proposes 'trainer --strategy=async-lockfree:a' 'adds= apply='
proposes 'trainer --strategy=async-lockfree:apply=' 'server worker'
proposes 'trainer --strategy=async-lockfree:apply=worker,adds=a' 'atomic'
proposes 'trainer --on-loss=' 'auto continue stop'
proposes 'trainer --batch=' ''
proposes 'trainer --quiet --repl' '--replace'
proposes 'trainer eval' 'evaluate'
proposes 'trainer fetch m' 'mnist'
proposes 'trainer completions z' 'zsh'
proposes 'trainer list adag' 'adagrad'
mkdir folder
touch 'folder/a file.safetensors' weights.csv
proposes 'trainer --out=fol' 'folder'
proposes 'trainer --weights=folder/a' 'folder/a file.safetensors'
proposes 'trainer predict wei' 'weights.csv'
[ "$(complete_line 'trainer ')" = "$("$TRAINER" --help | sed -n '/^commands:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p' |
    sort | tr '\n' ' ')" ] || fail "commands: $(complete_line 'trainer ')"

# Every option of every command, and no other, each accepted by the program.
count=0
for command in $(complete_line 'trainer '); do
    [ "$(complete_line "trainer $command --")" = "$({ echo --help; echo --help=all; "$TRAINER" "$command" \
        --help=all | grep -Eo '^  --[a-z-]+=?' | tr -d ' '; } | sort | tr '\n' ' ')" ] ||
        fail "trainer $command: $(complete_line "trainer $command --")"
    count=$((count + $(complete_line "trainer $command --" | wc -w)))
done
[ $count -gt 80 ] || fail "only $count options are completed"
for name in $(listed strategies '') $(listed models '') $(listed optimizers ''); do
    keys=$("$TRAINER" list "$name" | sed -n 's/^  \([a-z_0-9-]*=\).*/\1/p' | sort | tr '\n' ' ')
    kind=$("$TRAINER" list "$name" | sed -n '1s/ .*//p')
    found=$(complete_line "trainer --$kind=$name:")
    [ "$found" = "${keys:- }" ] || fail "$kind $name: settings $found, expected $keys"
done

# --- the other shells ---
for shell in zsh fish; do
    "$TRAINER" completions $shell >script || fail "completions $shell: exit code $?"
    grep -q 'async-lockfree' script || fail "completions $shell: no strategies"
    ! command -v $shell >/dev/null || $shell -n script || fail "$shell does not read its completions"
done
if command -v fish >/dev/null; then
    mkdir bin
    ln -s "$TRAINER" bin/trainer
    for line in 'trainer --strategy=async-:--strategy=' 'trainer bench --strategies as:' \
        'trainer fetch m:'; do
        PATH=$scratch/bin:$PATH fish --no-config -c "source script; complete -C '${line%:*}'" | cut -f1 |
            sort | tr '\n' ' ' >found
        case $line in
        *fetch*) wanted=mnist ;;
        *) wanted=$(listed strategies as | sed "s/[^ ]*/${line##*:}&/g") ;;
        esac
        [ "$(cat found)" = "$wanted " ] ||
            fail "fish: ${line%:*} is completed to: $(cat found), expected: $wanted"
    done
fi
"$TRAINER" completions tcsh >out 2>err
[ $? -eq 2 ] &&
    [ "$(cat err)" = 'trainer: completions: "tcsh": unknown shell, expected bash, zsh or fish' ] ||
    fail "completions tcsh: $(cat err)"

# --- the manual page ---
"$TRAINER" manual >trainer.1 || fail "manual: exit code $?"
"$TRAINER" --help=all >help
for option in $(grep -Eo '^  --[a-z-]+' help); do
    grep -Fq -e "${option//-/\\-}" trainer.1 || fail "manual: no $option"
done
for section in NAME SYNOPSIS DESCRIPTION COMMANDS 'EXIT STATUS' ENVIRONMENT FILES EXAMPLES; do
    grep -qx "\.SH $section" trainer.1 || fail "manual: no $section"
done
! grep -nE "^'|^\\.[^STPRnf]" trainer.1 || fail "manual: a text is taken for a command"
if command -v groff >/dev/null; then
    groff -man -Tutf8 -ww trainer.1 >page 2>warnings || fail "groff: $(cat warnings)"
    [ ! -s warnings ] || fail "groff: $(cat warnings)"
    sed 's/.\x08//g; s/\x1b\[[0-9;]*m//g' page | grep -q -- '--slots=N' ||
        fail "the page: no --slots: $(head -n 40 page)"
fi
if command -v man >/dev/null; then
    LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z trainer.1 \
        >page 2>warnings || fail "man: $(cat warnings)"
    [ ! -s warnings ] || fail "man: $(cat warnings)"
fi

[ $failures -eq 0 ]
