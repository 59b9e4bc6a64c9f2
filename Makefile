# `make demo` runs it, `make test` proves it, `make check` is quick enough for every save.
# Everything lands in .venv and .kafka; `make clean` removes both.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VENV_STAMP := $(VENV)/.complete

KAFKA := .kafka
KAFKA_SERVERS := 4.4.0 4.3.1 4.0.2
# The newest version whose command-line tools are published; they work against every server.
KAFKA_TOOLS := 4.3.1
# Whose messages the codec is judged by, beside those of the servers; nothing of it is run.
KAFKA_SCHEMAS := 3.9.2
KAFKA_POM := compat/kafka/pom.xml
KAFKA_STAMPS := $(KAFKA_SERVERS:%=$(KAFKA)/%/.complete) $(KAFKA_SCHEMAS:%=$(KAFKA)/%/.complete)
TOOL_SERVER_STAMP := $(KAFKA)/tool-server/.complete
CODEC_JUDGE_STAMP := $(KAFKA)/codec-judge/.complete
CODEC_JUDGE_SOURCES := $(patsubst %,compat/java/%.java,CodecJudge GeneratedClasses RandomInstances)
SCHEMA_JUDGE_STAMP := $(KAFKA)/schema-judge/.complete
# With these Kafka and Spark start in about half the time.
CLASS_ARCHIVES := build/class-archives
KAFKA_ARCHIVES := $(KAFKA_SERVERS:%=$(CLASS_ARCHIVES)/%.jsa)
SPARK_ARCHIVE := $(CLASS_ARCHIVES)/spark.jsa

# The optional wheel is never installed into .venv: tests find it unpacked here.
COMPILED_SITE := build/compiled-site
COMPILED_STAMP := $(COMPILED_SITE)/.complete
COMPILED_WHEEL := dist/kraft_wire_compiled-*.whl
SANITIZED_SITE := build/sanitized-site
SANITIZED_STAMP := $(SANITIZED_SITE)/.complete
SAMPLES_SITE := build/samples-site
SAMPLES_STAMP := $(SAMPLES_SITE)/.complete
# Tests that run on sample schemas, which are compiled as well; and those of them that run on nothing else.
SAMPLE_TESTS := $(patsubst %,tests/protocol/test_protocol_%.py,envelopes json second_reading tag_rules version_rules wire_rules)
SAMPLES_ALONE := $(filter %_rules.py,$(SAMPLE_TESTS))
SANITIZE := -fsanitize=address,undefined
COMPILED_INPUTS := $(shell find codegen compiled schemas/kafka/4.4.0 -type f -not -name '*.pyc') requirements.lock

MVN := mvn --quiet --batch-mode --file $(KAFKA_POM)
COPY_JARS := dependency:copy-dependencies
COMPILE_JAVA = java -jar $(dir $(TOOL_SERVER_STAMP))compiler/ecj-*.jar --release 17 -d $(@D)/classes
# Maven's launcher colours even its silence: what it says is shown only when it fails.
QUIETLY = >$(@D)/maven.log 2>&1 || { cat $(@D)/maven.log >&2; exit 1; }

.PHONY: help venv kafka kcat strace network java maven compiler no-wheel wheel-compiled demo demo-pipeline test test-unit test-compiled test-compiled-sanitized test-compat campaign check format bench bench-codec bench-spark lock clean

help:
	@echo 'make demo    run a real Kafka broker on our controller, from start to end'
	@echo 'make demo-pipeline   a cluster'"'"'s history becomes tables, with Spark, from start to end'
	@echo 'make test    all tests, those with real Kafka brokers included'
	@echo 'make check   format, lint, types, import contracts, generated code'
	@echo 'make format  let ruff format and fix what it can'
	@echo 'make campaign   the simulator for as long as you like: OPTIONS="--hours 8 --first 1000000"; the result goes to tests/sim/campaign.txt'
	@echo 'make bench   our controller beside the Java one'
	@echo 'make bench-codec   our codec beside the Java one and those of Python clients'
	@echo 'make bench-spark   metadata logs as tables, beside kafka-dump-log'
	@echo 'make wheel-compiled   the optional wheel with the compiled codec, into dist'
	@echo 'make lock    resolve the dependencies of pyproject.toml anew into requirements.lock'
	@echo 'make clean   remove what the other targets made'

# --- what the machine must have

java:
	@command -v java >/dev/null || { echo 'make: no `java` on the PATH: install a Java runtime, version 17 or newer (Debian: apt-get install default-jre-headless)' >&2; exit 1; }
	@major=$$(java -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1); \
	[ "$${major:-0}" -ge 17 ] || { echo "make: Kafka 4 brokers need Java 17 or newer, and \`java\` on the PATH says it is version $${major:-unknown}" >&2; exit 1; }

maven:
	@command -v mvn >/dev/null || { echo 'make: no `mvn` on the PATH: install Apache Maven, which fetches the Kafka jars (Debian: apt-get install maven)' >&2; exit 1; }

kcat:
	@command -v kcat >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo 'make: installing kcat'; \
		apt-get -qq install -y kcat || { apt-get -qq update && apt-get -qq install -y kcat; }; \
	else \
		echo 'make: no `kcat` on the PATH: install it from your system'"'"'s packages (Debian: sudo apt-get install kcat)' >&2; exit 1; \
	fi

strace:
	@command -v strace >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo 'make: installing strace'; \
		apt-get -qq install -y strace || { apt-get -qq update && apt-get -qq install -y strace; }; \
	else \
		echo 'make: no `strace` on the PATH: install it from your system'"'"'s packages, for disks that fail (Debian: sudo apt-get install strace)' >&2; exit 1; \
	fi

# Root as well, which the tests themselves ask for: they make namespaces, loop devices and mounts.
network:
	@command -v ip >/dev/null && command -v nsenter >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo 'make: installing iproute2 and util-linux'; \
		apt-get -qq install -y iproute2 util-linux || { apt-get -qq update && apt-get -qq install -y iproute2 util-linux; }; \
	else \
		echo 'make: no `ip` or no `nsenter` on the PATH: install them from your system'"'"'s packages, for networks that are cut (Debian: sudo apt-get install iproute2 util-linux)' >&2; exit 1; \
	fi

compiler:
	@command -v gcc >/dev/null || command -v cc >/dev/null || { echo 'make: no `gcc` on the PATH: install a C compiler, for the compiled codec (Debian: apt-get install gcc libc6-dev)' >&2; exit 1; }
	@$(PYTHON) -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' || { echo 'make: the C headers of $(PYTHON) are missing: install them, for the compiled codec (Debian: apt-get install python3-dev)' >&2; exit 1; }

# --- what is made here

venv: $(VENV_STAMP)

$(VENV_STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'make: $(PYTHON) is missing or older than Python 3.11: install a newer one, or name it as in `make PYTHON=python3.12 $(MAKECMDGOALS)`' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q kraft_wire codegen
	@touch $@

kafka: $(KAFKA_STAMPS) $(TOOL_SERVER_STAMP) $(CODEC_JUDGE_STAMP) $(SCHEMA_JUDGE_STAMP)

KAFKA_PROFILES = $(if $(filter $(KAFKA_SCHEMAS),$*),schemas,server$(if $(filter $(KAFKA_TOOLS),$*),$(,)tools))

$(KAFKA)/%/.complete: $(KAFKA_POM) | java maven
	@echo 'make: fetching Kafka $*'
	@rm -rf $(@D)
	@mkdir -p $(@D)
	@$(MVN) -P $(KAFKA_PROFILES) -Dkafka.version=$* $(COPY_JARS) -DoutputDirectory=$(abspath $(@D)) $(QUIETLY)
	@touch $@

$(TOOL_SERVER_STAMP): compat/java/ToolServer.java $(KAFKA_POM) | java maven
	@echo 'make: compiling the tool server'
	@rm -rf $(@D)
	@mkdir -p $(@D)
	@$(MVN) -P compiler $(COPY_JARS) -DoutputDirectory=$(abspath $(@D)/compiler) $(QUIETLY)
	@$(COMPILE_JAVA) $<
	@touch $@

$(CODEC_JUDGE_STAMP): $(CODEC_JUDGE_SOURCES) $(TOOL_SERVER_STAMP) $(KAFKA)/4.4.0/.complete
	@echo 'make: compiling the codec judge'
	@rm -rf $(@D)
	@mkdir -p $(@D)
	@$(COMPILE_JAVA) -classpath "$$(echo $(KAFKA)/4.4.0/*.jar | tr ' ' ':')" $(CODEC_JUDGE_SOURCES)
	@touch $@

$(SCHEMA_JUDGE_STAMP): compat/java/SchemaJudge.java $(TOOL_SERVER_STAMP) $(KAFKA_POM) | java maven
	@echo 'make: compiling the schema judge'
	@rm -rf $(@D)
	@mkdir -p $(@D)
	@$(MVN) -P generator -Dkafka.version=$(KAFKA_TOOLS) $(COPY_JARS) -DoutputDirectory=$(abspath $(@D)/jars) $(QUIETLY)
	@$(COMPILE_JAVA) -classpath "$$(echo $(@D)/jars/*.jar | tr ' ' ':')" $<
	@touch $@

$(KAFKA_ARCHIVES): $(CLASS_ARCHIVES)/%.jsa: $(KAFKA)/%/.complete $(TOOL_SERVER_STAMP) | venv
	@echo 'make: archiving the classes of Kafka $*'
	@$(BIN)/python -m compat.archive_classes $*

$(SPARK_ARCHIVE): $(VENV_STAMP)
	@echo 'make: archiving the classes of Spark'
	@$(BIN)/python -m compat.archive_classes spark

wheel-compiled: $(COMPILED_STAMP)
	@echo "make: the wheel is $$(echo $(COMPILED_WHEEL))"

# Folders for the sources, the wheel, and the wheel's contents; what writes the messages' part of the sources.
define compile_codec
@echo 'make: compiling the codec'
@rm -rf $(1) $(2)/kraft_wire_compiled-*.whl $(3)
@mkdir -p $(1)
@cp -r compiled/. $(1)
@$(or $(4),$(BIN)/python -m codegen cython --into) $(1)/kraft_wire_compiled >/dev/null
@$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir $(2) ./$(1)
@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-index --target $(3) $(2)/kraft_wire_compiled-*.whl
@touch $(3)/.complete
endef

# A wheel that is gone is made again.
$(COMPILED_STAMP): $(COMPILED_INPUTS) $(if $(wildcard $(COMPILED_WHEEL)),,no-wheel) | venv compiler
	$(call compile_codec,build/compiled,dist,$(@D))

$(SANITIZED_STAMP): export CFLAGS := $(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer
$(SANITIZED_STAMP): export LDFLAGS := $(SANITIZE)
$(SANITIZED_STAMP): $(COMPILED_INPUTS) | venv compiler
	$(call compile_codec,build/sanitized,build/sanitized-wheel,$(@D))

# The same wheel, but for the sample schemas of tests and the committed packages that aren't Kafka's.
$(SAMPLES_STAMP): export KRAFT_WIRE_SAMPLES := $(abspath build/samples)
$(SAMPLES_STAMP): $(COMPILED_INPUTS) $(SAMPLE_TESTS) $(wildcard tests/*.py tests/protocol/fuzzing.py schemas/kip-853/*) | venv compiler
	@rm -rf build/samples
	@mkdir -p build/samples
	@echo 'make: gathering sample schemas'
	@$(BIN)/pytest --quiet --no-header -n 2 $(SAMPLE_TESTS) tests/protocol/test_protocol_fuzz.py -k 'not fuzzed' --fuzz-inputs 1 >build/samples/log || { cat build/samples/log >&2; exit 1; }
	$(call compile_codec,build/compiled-samples,build/samples-wheel,$(@D),PYTHONPATH=.:tests $(BIN)/python compiled/samples/write_samples.py)

, := ,

# --- what one does with it

demo: venv $(KAFKA)/4.4.0/.complete $(TOOL_SERVER_STAMP) kcat
	@$(BIN)/python -m compat.demo

demo-pipeline: venv $(KAFKA)/4.4.0/.complete $(TOOL_SERVER_STAMP) kcat
	@$(BIN)/python -m compat.demo_pipeline

test: test-unit test-compiled test-compat

test-unit: venv strace
	$(BIN)/pytest tests -n 2 --dist worksteal

# What holds for the codec holds for the compiled one. compiled/tests fails where it is not what runs.
test-compiled: venv kafka $(COMPILED_STAMP) $(SAMPLES_STAMP)
	PYTHONPATH=$(COMPILED_SITE) $(BIN)/pytest compiled/tests $(filter-out $(SAMPLES_ALONE),$(wildcard tests/protocol/test_*.py)) \
		compat/tests/test_codec_judge.py compat/tests/test_peers_codecs_agree.py compat/tests/test_peers_at_the_wire.py -n 2
	PYTHONPATH=$(SAMPLES_SITE) $(BIN)/pytest compiled/samples $(SAMPLE_TESTS) -n 2
	PYTHONPATH=$(SAMPLES_SITE) $(BIN)/pytest tests/protocol/test_protocol_fuzz.py -k 'sample or kip_853' -n 2

# Memory errors and undefined behaviour end the process, with a report.
test-compiled-sanitized: venv $(SANITIZED_STAMP)
	PYTHONPATH=$(SANITIZED_SITE) PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 \
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
		$(BIN)/pytest compiled/tests -n 2

test-compat: venv kafka kcat strace network $(KAFKA_ARCHIVES) $(SPARK_ARCHIVE)
	$(BIN)/pytest compat -n 3 --dist loadfile --no-loadscope-reorder

# More by OPTIONS (see `python tests/sim/campaign.py --help`); the result is tests/sim/campaign.txt.
campaign: venv
	@$(BIN)/python tests/sim/campaign.py $(OPTIONS)

check: venv
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m codegen generate --check
	$(BIN)/python -m codegen.config_facts generate --check

format: venv
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# A part of it by OPTIONS: `make bench OPTIONS="--only quorum large"` (see `python -m compat.bench --help`).
bench: venv kafka
	@$(BIN)/python -m compat.bench $(OPTIONS)

# More by OPTIONS: `make bench-codec OPTIONS=--quick` (see `python -m compat.bench_codec --help`).
bench-codec: venv $(KAFKA)/4.4.0/.complete $(TOOL_SERVER_STAMP) $(COMPILED_STAMP)
	@$(BIN)/python -m compat.bench_codec --compiled $(COMPILED_SITE) $(OPTIONS)

# A part of it by OPTIONS: `make bench-spark OPTIONS="--only decode"` (see `python -m compat.bench_spark --help`).
bench-spark: venv $(KAFKA)/$(KAFKA_TOOLS)/.complete
	@$(BIN)/python -m compat.bench_spark $(OPTIONS)

lock:
	@scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; \
	$(PYTHON) -m venv "$$scratch"; \
	"$$scratch/bin/pip" install --quiet --disable-pip-version-check uv; \
	"$$scratch/bin/uv" pip compile --quiet --upgrade --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
		--group dev --extra spark --extra delta --extra declarative pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) $(KAFKA) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
