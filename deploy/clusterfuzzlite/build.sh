#!/bin/bash -eu
# Builds the native fuzz targets. Copy this folder to .clusterfuzzlite/ for
# ClusterFuzzLite to find it.
module=github.com/pi-conform/pi-conform
while read -r package target name; do
  compile_native_go_fuzzer "$module/$package" "$target" "$name"
done <<'TARGETS'
fuzz FuzzLoop fuzz_loop
conformance FuzzCheck fuzz_check
harness FuzzParseCase fuzz_parse_case
harness/trace FuzzDecode fuzz_decode
TARGETS
