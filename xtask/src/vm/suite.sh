# Runs the test files of this guest, one after the other. Lines of /run/files: NUMBER BINARY MODULE DIRECTORY, with `-`
# for all modules. The first is the sentinel: if it fails, the others would mean nothing.
while read -r number binary module directory; do
    set --
    only=$ONLY
    [ "$number" != 0 ] || only=
    if [ "$module" != - ] || [ -n "$only" ]; then
        pattern=.
        [ "$module" = - ] || pattern="^$module::"
        set -- --exact $("$binary" --list --format terse | sed -n 's/: test$//p' | grep "$pattern" | grep -E -e "${only:-.}")
        [ $# != 1 ] || [ -z "$only" ] || continue
        # Without names all tests would run.
        [ $# != 1 ] || set -- --exact "no test in $module"
    fi
    echo "@@ begin $number"
    cd "$directory" && timeout "$LIMIT_S" "$binary" "$@" </dev/null
    status=$?
    echo "@@ end $number $status"
    [ "$number" != 0 ] || [ $status = 0 ] || break
done </run/files
