#!/usr/bin/env bash
# Makes the release of the commit that is checked out, in bin/release: the image for all
# platforms as an OCI layout, the chart with the image's digest, the archives of the kubectl
# plugin with krew's manifest, the SBOMs and the checksums. It publishes nothing.
# PARTS leaves some of it out. docs/releasing.md says more.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/version.sh
parts=${PARTS:-image chart plugins}
[ -n "$VERSION" ] && [ -n "$COMMIT" ] && [ -n "$SOURCE_DATE_EPOCH" ] ||
	{ echo "release: this is no git clone; set VERSION, COMMIT and SOURCE_DATE_EPOCH" >&2; exit 1; }
chart=charts/cluster-inventory
if [[ $VERSION =~ ^v[0-9]+\.[0-9]+\.[0-9]+$ ]] && ! grep -qx "appVersion: $VERSION" $chart/Chart.yaml; then
	echo "release: the tag is $VERSION, but not the appVersion in $chart/Chart.yaml" >&2
	exit 1
fi
# What the programs need of a processor, whatever the environment says.
export GOAMD64=v1 GOARM64=v8.0
out=bin/release programs=bin/programs
rm -rf $out $programs
mkdir -p $out
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go -C hack/tools/release build -o "$work/release" .
release="$work/release -programs $programs"

build() { # OS ARCH PROGRAM...
	echo "release: ${*:3} for $1/$2"
	GOOS=$1 GOARCH=$2 hack/build.sh "$programs/$1_$2" "${@:3}"
}

for part in $parts; do
	case $part in
	image)
		for arch in amd64 arm64; do
			build linux $arch ./cmd/manager ./cmd/agent ./cmd/cp-creds
		done
		$release layout $out/image >$out/image-digest.txt
		echo "release: image $(cat $out/image-digest.txt)"
		;;
	chart)
		digest=$(cat $out/image-digest.txt)
		cp -r $chart "$work/"
		sed -i "0,/^  digest: \"\"$/s//  digest: $digest/" "$work/cluster-inventory/values.yaml"
		sed -i "s|^\( *image: .*/cluster-inventory-addon\):.*|\1:$VERSION@$digest|" "$work/cluster-inventory/Chart.yaml"
		helm="go -C test/fleet run ./cmd/fleet helm --"
		$helm package "$work/cluster-inventory" --version "${VERSION#v}" --app-version "$VERSION" -d "$PWD/$out"
		package=$out/cluster-inventory-${VERSION#v}.tgz
		$release same-times "$package"
		# Of the manager, the hooks and the agents.
		images=$($helm template x "$PWD/$package" | grep -E '^ *(- )?image: ')
		if [ "$(wc -l <<<"$images")" -lt 3 ] || grep -v "@$digest" <<<"$images"; then
			echo "release: the chart does not install the image by its digest" >&2
			exit 1
		fi
		;;
	plugins)
		for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64; do
			build ${platform%/*} ${platform#*/} ./cmd/kubectl-inventory
		done
		$release plugins $out
		;;
	*)
		echo "release: PARTS: $part is none of image, chart, plugins" >&2
		exit 1
		;;
	esac
done
$release sbom $out/sbom
(cd $out && find . -type f ! -path './image/*' ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS)
echo "release: $VERSION is in $out"
