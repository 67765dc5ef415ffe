#!/usr/bin/env bash
# Runs every fuzz target of the module for a time, one after the other, and goes
# on after a failure. What broke a target is in its package's testdata/fuzz.
#
#   test/fuzz.sh 10m           all
#   test/fuzz.sh 10m Request   those whose name has "Request" in it
set -euo pipefail
cd "$(dirname "$0")/.."

time=${1:?usage: test/fuzz.sh TIME [NAME]}
name=${2:-}
failed=()
count=0
while IFS=: read -r file target; do
	[[ $target == *"$name"* ]] || continue
	count=$((count + 1))
	echo "== $target in $(dirname "$file")"
	go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -parallel 2 "./$(dirname "$file")" || failed+=("$target")
done < <(grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' cmd controllers dataplane test | sed 's/func //' | sort)

if ((count == 0)); then
	echo "no fuzz target${name:+ named $name}"
	exit 1
fi
echo "$((count - ${#failed[@]})) of $count targets found nothing${failed[0]:+; look at: ${failed[*]}}"
((${#failed[@]} == 0))
