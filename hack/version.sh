# To be sourced: sets VERSION, COMMIT and SOURCE_DATE_EPOCH (the time of the commit) to what
# git says of this tree, unless the environment has them. A commit without a tag has a
# version as Go gives it, v0.0.0-<time>-<commit>, and so every version is a semantic one.
# Without git, they stay empty.
if commit=$(git rev-parse HEAD 2>/dev/null); then
	COMMIT=${COMMIT:-$commit}
	SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
	if [ -z "${VERSION:-}" ] && ! VERSION=$(git describe --tags --match 'v*' --abbrev=12 --dirty 2>/dev/null); then
		VERSION=v0.0.0-$(TZ=UTC git log -1 --date=format-local:%Y%m%d%H%M%S --format=%cd)-${commit:0:12}
		git diff --quiet HEAD || VERSION=$VERSION-dirty
	fi
fi
export VERSION=${VERSION:-} COMMIT=${COMMIT:-} SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-}
