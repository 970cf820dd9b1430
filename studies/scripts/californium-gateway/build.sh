#!/usr/bin/env bash
# Builds a forward proxy on Californium's proxy2 into target/californium-gateway, for studies/scripts/gateway.sh. Needs Maven and a JDK.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
target=$(mkdir -p ../../../target/californium-gateway && cd ../../../target/californium-gateway && pwd)
mvn -q -B dependency:copy-dependencies -DoutputDirectory="$target"
javac -cp "$target/*" -d "$target/classes" src/main/java/Gateway.java
jar -cf "$target/gateway.jar" -C "$target/classes" .
