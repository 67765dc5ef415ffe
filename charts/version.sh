#!/usr/bin/env bash
# Prints the semantic version for what `git describe` says of a tree: v1.2.3 is
# 1.2.3; five commits later it is on the way to 1.2.4; without a tag it is before
# all of them.
set -euo pipefail
described=${1:?usage: version.sh DESCRIBED, such as v1.2.3-5-g0123abc}
dirty=
if [[ $described == *-dirty ]]; then
	dirty=.dirty
	described=${described%-dirty}
fi
number='(0|[1-9][0-9]*)'
if [[ $described =~ ^v?$number\.$number\.$number(-[0-9A-Za-z.]+)?(-([0-9]+)-g([0-9a-f]+))?$ ]]; then
	major=${BASH_REMATCH[1]} minor=${BASH_REMATCH[2]} patch=${BASH_REMATCH[3]} pre=${BASH_REMATCH[4]} commits=${BASH_REMATCH[6]} hash=${BASH_REMATCH[7]}
	if [[ -z $commits && -z $dirty ]]; then
		echo "$major.$minor.$patch$pre"
	elif [[ -n $pre ]]; then
		echo "$major.$minor.$patch$pre.${commits:-0}${hash:+.g$hash}$dirty"
	else
		echo "$major.$minor.$((patch + 1))-dev.${commits:-0}${hash:+.g$hash}$dirty"
	fi
elif [[ $described =~ ^[0-9a-f]{7,40}$ ]]; then
	echo "0.0.0-dev.g$described$dirty" # digits alone must not begin with a zero
else
	echo "0.0.0-${described//[^0-9A-Za-z-]/-}$dirty"
fi
