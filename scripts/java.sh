#!/bin/sh
# Makes sure of Java 17 or newer where Spark looks for it: JAVA_HOME if that is set, else `java` on PATH.
# As root on Debian or Ubuntu it installs one; otherwise it says what to install.
set -eu

# "17.0.15" is 17, "1.8.0_392" is 8, "22-ea" is 22.
major() {
    "$1" -version 2>&1 | sed -n -E 's/.* version "(1\.)?([0-9]+).*/\2/p' | head -n 1
}

enough() {
    found=$(major "$1" 2>/dev/null || true)
    [ "${found:-0}" -ge 17 ]
}

if [ -n "${JAVA_HOME:-}" ]; then
    if enough "$JAVA_HOME/bin/java"; then
        exit 0
    fi
    echo "setup: JAVA_HOME=$JAVA_HOME is not Java 17 or newer; unset it or point it to one" >&2
    exit 2
fi
if enough java; then
    exit 0
fi

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    # Releases that no longer carry 17 have a newer one as their default.
    if apt-get update && {
        apt-get install -y --no-install-recommends openjdk-17-jre-headless ||
            apt-get install -y --no-install-recommends default-jre-headless
    } && enough java; then
        exit 0
    fi
fi
echo "setup: Spark needs Java 17 or newer, found ${found:-none}; on Debian and Ubuntu: apt-get install openjdk-17-jre-headless" >&2
exit 2
