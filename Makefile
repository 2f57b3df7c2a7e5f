# Commands for people; CMake does the work. Everything is built under build/<preset>.
PROGRAM = build/release/streamvec

.PHONY: build test demo screenshots bench check asan tsan fuzz clean help
build: setup                ## build/release/streamvec
	@tools/build release

test: build                 ## all unit and end-to-end tests
	@tools/test release

demo: build                 ## train on made-up text with a planted truth, and see whether it is found; KEEP=1 leaves its page up
	@$(PROGRAM) demo --listen 127.0.0.1:$(or $(PORT),0) $(if $(KEEP),--keep)

screenshots: build          ## the README's pictures of the dashboard, from a run of the demo
	@tools/screenshots $(PROGRAM) docs/images

bench: build                ## speed and quality beside fastText and gensim
	@if [ -x bench/run ]; then bench/run; else echo "bench/run is not there" >&2; exit 1; fi

check:                      ## layout, warnings as errors, folder order
	@tools/setup check
	@tools/check

asan: setup                 ## all tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@tools/build asan
	@tools/test asan

tsan: setup                 ## all tests under ThreadSanitizer
	@tools/build tsan
	@tools/test tsan

fuzz:                       ## every parser under libFuzzer, FUZZ_SECONDS=60 each
	@tools/setup fuzz
	@tools/build fuzz fuzz
	@tools/fuzz

.PHONY: setup
setup:                      ## install missing packages (Debian 12, Ubuntu 24.04)
	@tools/setup

clean:                      ## remove everything built
	rm -rf build

help:                       ## this list
	@sed -n 's/^\([a-z]*\):[^#]*## /\1\t/p' Makefile | expand -t 10
