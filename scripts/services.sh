#!/bin/sh
# What the tests run against besides Spark: PostgreSQL, a browser, and Maven for Kafka. As root on Debian or Ubuntu it
# installs what is missing; elsewhere it says what the tests will skip, and never fails: the rest of the suite needs none.
set -u

there() {
    command -v "$1" >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/"$1" >/dev/null 2>&1
}

missing=
there postgres || missing="$missing postgresql"
there chromium && there chromedriver || missing="$missing chromium chromium-driver"
there mvn || missing="$missing maven"
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086 - a list of names
    apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null && exit 0
fi
echo "services: tests that need them are skipped; on Debian and Ubuntu: apt-get install$missing" >&2
exit 0
