# `make` lists the targets. Downloads and installed packages go to .venv and .kafka, build products to build
# and dist; `make clean` removes them all.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VENV_STAMP := $(VENV)/.complete

KAFKA := .kafka
KAFKA_SERVERS := 4.4.0 4.3.1 4.0.2 3.9.2
# The newest version whose command-line tools are published; they work with every server version.
KAFKA_TOOLS := 4.3.1
# The size of the jars of each version, for the messages.
SIZE_4.4.0 := 43 MB
SIZE_4.3.1 := 56 MB, with the tools
SIZE_4.0.2 := 42 MB
SIZE_3.9.2 := 49 MB
KAFKA_POM := compat/kafka/pom.xml
KAFKA_STAMPS := $(KAFKA_SERVERS:%=$(KAFKA)/%/.complete)
TOOL_SERVER_STAMP := $(KAFKA)/tool-server/.complete
CODEC_JUDGE_STAMP := $(KAFKA)/codec-judge/.complete
CODEC_JUDGE_SOURCES := $(patsubst %,compat/java/%.java,CodecJudge GeneratedClasses RandomInstances)
SCHEMA_JUDGE_STAMP := $(KAFKA)/schema-judge/.complete
CONFIG_JUDGE_STAMP := $(KAFKA)/config-judge/.complete
# With these class archives (JEP 350) Kafka and Spark start in about half the time. 3.9.2 is seldom started.
CLASS_ARCHIVES := build/class-archives
KAFKA_ARCHIVES := $(patsubst %,$(CLASS_ARCHIVES)/%.jsa,$(filter-out 3.9.2,$(KAFKA_SERVERS)))
SPARK_ARCHIVE := $(CLASS_ARCHIVES)/spark.jsa

# The optional wheel is never installed into .venv: tests use this unpacked copy.
COMPILED_SITE := build/compiled-site
COMPILED_STAMP := $(COMPILED_SITE)/.complete
COMPILED_WHEEL := dist/kraft_wire_compiled-*.whl
SANITIZED_SITE := build/sanitized-site
SANITIZED_STAMP := $(SANITIZED_SITE)/.complete
SAMPLES_SITE := build/samples-site
SAMPLES_STAMP := $(SAMPLES_SITE)/.complete
# SAMPLE_TESTS use sample schemas, which are also compiled. SAMPLES_ALONE are those that use nothing else.
SAMPLE_TESTS := $(patsubst %,tests/protocol/test_protocol_%.py,envelopes json second_reading tag_rules version_rules wire_rules)
SAMPLES_ALONE := $(filter %_rules.py,$(SAMPLE_TESTS))
SANITIZE := -fsanitize=address,undefined
COMPILED_INPUTS := $(shell find codegen compiled schemas/kafka/4.4.0 -type f -not -name '*.pyc') requirements.lock

MVN := mvn --quiet --batch-mode --file $(KAFKA_POM)
COPY_JARS := dependency:copy-dependencies
COMPILE_JAVA = java -jar $(dir $(TOOL_SERVER_STAMP))compiler/ecj-*.jar --release 17 -d $(@D)/classes
# Maven writes colour codes even with --quiet, so its output is shown only when it fails.
QUIETLY = >$(@D)/maven.log 2>&1 || { cat $(@D)/maven.log >&2; exit 1; }

.PHONY: help venv kafka kadm kcat strace prometheus network java maven compiler no-wheel wheel-compiled demo demo-pipeline test test-unit test-compiled test-compiled-sanitized test-compat campaign campaign-brokers campaign-exporters campaign-strangers campaign-behaviour check format bench bench-scale bench-codec bench-spark lock clean

help:
	@echo 'make demo            start our controller and a real Kafka broker, produce and consume messages'
	@echo 'make demo-pipeline   start a cluster and turn its metadata log into tables with Spark'
	@echo 'make test            run all tests, including those with real Kafka brokers and Spark (long)'
	@echo 'make test-unit       run the tests that need neither Java nor Kafka'
	@echo 'make test-compiled   run the codec tests on the compiled codec'
	@echo 'make test-compat     run the tests with Kafka brokers, tools and clients, and with Spark'
	@echo 'make check           check format, lint, types, import contracts, generated code and sizes of modules'
	@echo 'make format          format the code and apply the automatic fixes of ruff'
	@echo 'make campaign        run the simulator as long as you like, for example OPTIONS="--hours 8 --first 1000000";'
	@echo '                     the result goes to tests/sim/campaign.txt'
	@echo 'make campaign-brokers  restart real brokers with 20,000 partitions one after the other; the result goes'
	@echo '                     to compat/campaigns/rolling_restart.txt'
	@echo 'make campaign-exporters  end, pause and cut off controllers with exporters of all kinds, for an hour; the'
	@echo '                     result goes to compat/campaigns/exporters.txt'
	@echo 'make campaign-behaviour  play 2,000 scripts of requests to Java'"'"'s controller and to ours, and compare; the'
	@echo '                     result goes to compat/campaigns/behaviour.txt and docs/behaviour.md'
	@echo 'make campaign-strangers  attack controllers under load for an hour with forged requests and fake leaders; the'
	@echo '                     result goes to compat/campaigns/strangers.txt'
	@echo 'make bench           compare the speed of our controller with Java'"'"'s'
	@echo 'make bench-scale     compare clusters with very many partitions or brokers, and clients that ask for too much'
	@echo 'make bench-codec     compare the speed of our codec with Java'"'"'s and with other Python codecs'
	@echo 'make bench-spark     measure how fast metadata logs become tables, beside kafka-dump-log'
	@echo 'make wheel-compiled  build the optional wheel with the compiled codec into dist'
	@echo 'make venv            install the Python dependencies into .venv'
	@echo 'make kafka           fetch the Kafka versions that the tests use into .kafka'
	@echo 'make lock            resolve the dependencies of pyproject.toml again and write requirements.lock'
	@echo 'make clean           remove everything that the other targets made'

# --- programs that must be installed

java:
	@command -v java >/dev/null || { echo 'make: no `java` on the PATH: install Java 17 or newer (Debian: apt-get install default-jre-headless)' >&2; exit 1; }
	@major=$$(java -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1); \
	[ "$${major:-0}" -ge 17 ] || { echo "make: Kafka 4 brokers need Java 17 or newer, but \`java\` on the PATH is version $${major:-unknown}" >&2; exit 1; }

maven:
	@command -v mvn >/dev/null || { echo 'make: no `mvn` on the PATH: install Apache Maven, which downloads the Kafka jars (Debian: apt-get install maven)' >&2; exit 1; }

kcat:
	@command -v kcat >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo 'make: installing kcat with apt-get'; \
		apt-get -qq install -y kcat || { apt-get -qq update && apt-get -qq install -y kcat; }; \
	else \
		echo 'make: no `kcat` on the PATH: install it from your system'"'"'s packages (Debian: sudo apt-get install kcat)' >&2; exit 1; \
	fi

kadm: $(KAFKA)/kadm

$(KAFKA)/kadm: $(wildcard compat/go/kadm/*) $(KAFKA)/4.4.0/.complete
	@command -v go >/dev/null || { echo 'make: no `go` on the PATH: a test uses an admin client in Go; install Go 1.26 or newer' >&2; exit 1; }
	@echo 'make: building an admin client with franz-go, compat/go/kadm'
	@cd compat/go/kadm && go build -o $(abspath $@) .

strace:
	@command -v strace >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo 'make: installing strace with apt-get'; \
		apt-get -qq install -y strace || { apt-get -qq update && apt-get -qq install -y strace; }; \
	else \
		echo 'make: no `strace` on the PATH: the tests simulate failing disks with it; install it from your system'"'"'s packages (Debian: sudo apt-get install strace)' >&2; exit 1; \
	fi

# The Debian package starts a service. Its two programs are enough.
prometheus:
	@command -v prometheus >/dev/null && command -v promtool >/dev/null && exit 0; \
	[ -x .prometheus/usr/bin/promtool ] && exit 0; \
	if command -v apt-get >/dev/null; then \
		echo 'make: getting Prometheus with apt-get'; \
		rm -rf .prometheus && mkdir .prometheus && cd .prometheus && \
		{ apt-get -qq -o APT::Sandbox::User=root download prometheus || { apt-get -qq update && apt-get -qq -o APT::Sandbox::User=root download prometheus; }; } && \
		dpkg-deb -x prometheus_*.deb . && rm prometheus_*.deb; \
	else \
		echo 'make: no `prometheus` or no `promtool` on the PATH: the tests set off the alarms with them; install Prometheus' >&2; exit 1; \
	fi

# These tests also need root, and say so: they create network namespaces, loop devices and mounts.
network:
	@command -v ip >/dev/null && command -v nsenter >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo 'make: installing iproute2 and util-linux with apt-get'; \
		apt-get -qq install -y iproute2 util-linux || { apt-get -qq update && apt-get -qq install -y iproute2 util-linux; }; \
	else \
		echo 'make: no `ip` or no `nsenter` on the PATH: the tests simulate network partitions with them; install them from your system'"'"'s packages (Debian: sudo apt-get install iproute2 util-linux)' >&2; exit 1; \
	fi

compiler:
	@command -v gcc >/dev/null || command -v cc >/dev/null || { echo 'make: no `gcc` on the PATH: the compiled codec needs a C compiler; install one (Debian: apt-get install gcc libc6-dev)' >&2; exit 1; }
	@$(PYTHON) -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' || { echo 'make: the C headers of $(PYTHON) are missing, and the compiled codec needs them; install them (Debian: apt-get install python3-dev)' >&2; exit 1; }

# --- dependencies and build products

venv: $(VENV_STAMP)

$(VENV_STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'make: $(PYTHON) is missing or older than Python 3.11: install a newer one, or pass its name: `make PYTHON=python3.12 $(MAKECMDGOALS)`' >&2; exit 1; }
	@echo 'make: creating a virtual environment in $(VENV)'
	@$(PYTHON) -m venv $(VENV)
	@echo 'make: installing the dependencies into $(VENV) (1.3 GB with Spark; a minute or more, without output)'
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@echo 'make: installing kraft-wire into $(VENV)'
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@echo 'make: compiling the Python sources to bytecode (some seconds)'
	@$(BIN)/python -m compileall -q kraft_wire codegen
	@touch $@

kafka: $(KAFKA_STAMPS) $(TOOL_SERVER_STAMP) $(CODEC_JUDGE_STAMP) $(SCHEMA_JUDGE_STAMP) $(CONFIG_JUDGE_STAMP)

KAFKA_PROFILES = server$(if $(filter $(KAFKA_TOOLS),$*),$(,)tools)

$(KAFKA)/%/.complete: $(KAFKA_POM) | java maven
	@echo 'make: fetching Kafka $* with Maven ($(SIZE_$*))'
	@rm -rf $(@D)
	@mkdir -p $(@D)
	@$(MVN) -P $(KAFKA_PROFILES) -Dkafka.version=$* $(COPY_JARS) -DoutputDirectory=$(abspath $(@D)) $(QUIETLY)
	@touch $@

$(TOOL_SERVER_STAMP): compat/java/ToolServer.java $(KAFKA_POM) | java maven
	@echo 'make: fetching a Java compiler (3 MB) and compiling the server of Kafka tools, compat/java/ToolServer.java'
	@rm -rf $(@D)
	@mkdir -p $(@D)
	@$(MVN) -P compiler $(COPY_JARS) -DoutputDirectory=$(abspath $(@D)/compiler) $(QUIETLY)
	@$(COMPILE_JAVA) $<
	@touch $@

$(CODEC_JUDGE_STAMP): $(CODEC_JUDGE_SOURCES) $(TOOL_SERVER_STAMP) $(KAFKA)/4.4.0/.complete
	@echo 'make: compiling the codec judge, compat/java/CodecJudge.java'
	@rm -rf $(@D)
	@mkdir -p $(@D)
	@$(COMPILE_JAVA) -classpath "$$(echo $(KAFKA)/4.4.0/*.jar | tr ' ' ':')" $(CODEC_JUDGE_SOURCES)
	@touch $@

$(CONFIG_JUDGE_STAMP): compat/java/ConfigJudge.java $(TOOL_SERVER_STAMP) $(KAFKA)/4.4.0/.complete
	@echo 'make: compiling the config judge, compat/java/ConfigJudge.java'
	@rm -rf $(@D)
	@mkdir -p $(@D)
	@$(COMPILE_JAVA) -classpath "$$(echo $(KAFKA)/4.4.0/*.jar | tr ' ' ':')" $<
	@touch $@

$(SCHEMA_JUDGE_STAMP): compat/java/SchemaJudge.java $(TOOL_SERVER_STAMP) $(KAFKA_POM) | java maven
	@echo 'make: fetching Kafka'"'"'s message generator (7 MB) and compiling the schema judge, compat/java/SchemaJudge.java'
	@rm -rf $(@D)
	@mkdir -p $(@D)
	@$(MVN) -P generator -Dkafka.version=$(KAFKA_TOOLS) $(COPY_JARS) -DoutputDirectory=$(abspath $(@D)/jars) $(QUIETLY)
	@$(COMPILE_JAVA) -classpath "$$(echo $(@D)/jars/*.jar | tr ' ' ':')" $<
	@touch $@

$(KAFKA_ARCHIVES): $(CLASS_ARCHIVES)/%.jsa: $(KAFKA)/%/.complete $(TOOL_SERVER_STAMP) | venv
	@echo 'make: running Kafka $* once to archive its classes (about 20 s; later starts take half the time)'
	@$(BIN)/python -m compat.harness.kafka.archive_classes $*

$(SPARK_ARCHIVE): $(VENV_STAMP)
	@echo 'make: running Spark once to archive its classes (about a minute; later starts take half the time)'
	@$(BIN)/python -m compat.harness.kafka.archive_classes spark

wheel-compiled: $(COMPILED_STAMP)
	@echo "make: built $$(echo $(COMPILED_WHEEL))"

# Arguments: the folders of the sources, of the wheel, and of the unpacked wheel; optionally the command that
# generates the sources of the messages.
define compile_codec
@echo 'make: generating the sources of the compiled codec in $(1) and compiling them (a minute or more)'
@rm -rf $(1) $(2)/kraft_wire_compiled-*.whl $(3)
@mkdir -p $(1)
@cp -r compiled/. $(1)
@$(or $(4),$(BIN)/python -m codegen cython --into) $(1)/kraft_wire_compiled >/dev/null
@$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir $(2) ./$(1)
@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-index --target $(3) $(2)/kraft_wire_compiled-*.whl
@touch $(3)/.complete
endef

# A wheel that was deleted is built again.
$(COMPILED_STAMP): $(COMPILED_INPUTS) $(if $(wildcard $(COMPILED_WHEEL)),,no-wheel) | venv compiler
	$(call compile_codec,build/compiled,dist,$(@D))

$(SANITIZED_STAMP): export CFLAGS := $(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer
$(SANITIZED_STAMP): export LDFLAGS := $(SANITIZE)
$(SANITIZED_STAMP): $(COMPILED_INPUTS) | venv compiler
	$(call compile_codec,build/sanitized,build/sanitized-wheel,$(@D))

# The same wheel for the sample schemas of the tests and for the generated packages that aren't Kafka's.
$(SAMPLES_STAMP): export KRAFT_WIRE_SAMPLES := $(abspath build/samples)
$(SAMPLES_STAMP): $(COMPILED_INPUTS) $(SAMPLE_TESTS) $(wildcard tests/support/*.py tests/protocol/fuzzing.py schemas/kip-853/*) | venv compiler
	@rm -rf build/samples
	@mkdir -p build/samples
	@echo 'make: running the tests with sample schemas once, to collect the schemas (about a minute)'
	@$(BIN)/pytest --quiet --no-header -n 2 $(SAMPLE_TESTS) tests/protocol/test_protocol_fuzz.py -k 'not fuzzed' --fuzz-inputs 1 >build/samples/log || { cat build/samples/log >&2; exit 1; }
	$(call compile_codec,build/compiled-samples,build/samples-wheel,$(@D),PYTHONPATH=. $(BIN)/python compiled/samples/write_samples.py)

, := ,

# --- demos, tests, benchmarks

demo: venv $(KAFKA)/4.4.0/.complete $(TOOL_SERVER_STAMP) kcat
	@echo 'make: running our controller with a Kafka 4.4.0 broker (10 to 40 s)'
	@$(BIN)/python -m compat.demos.broker

demo-pipeline: venv $(KAFKA)/4.4.0/.complete $(TOOL_SERVER_STAMP) kcat
	@echo 'make: running three controllers, three Kafka 4.4.0 brokers and the table pipeline (1 to 3 minutes)'
	@$(BIN)/python -m compat.demos.pipeline

test: test-unit test-compiled test-compat

test-unit: venv strace
	@echo 'make: running the unit tests, with two processes'
	$(BIN)/pytest tests -n 2 --dist worksteal

# The codec's tests run again on the compiled codec. compiled/tests fails if the compiled codec isn't in use.
test-compiled: venv kafka $(COMPILED_STAMP) $(SAMPLES_STAMP)
	@echo 'make: running the codec tests on the compiled codec, with two processes (three runs)'
	PYTHONPATH=$(COMPILED_SITE) $(BIN)/pytest compiled/tests $(filter-out $(SAMPLES_ALONE),$(wildcard tests/protocol/test_*.py)) tests/wire/test_served_versions.py \
		compat/interop/codec/test_codec_judge.py \
		compat/interop/clients/test_client_codecs_agree.py compat/interop/clients/test_client_codecs_on_the_wire.py -n 2
	PYTHONPATH=$(SAMPLES_SITE) $(BIN)/pytest compiled/samples $(SAMPLE_TESTS) -n 2
	PYTHONPATH=$(SAMPLES_SITE) $(BIN)/pytest tests/protocol/test_protocol_fuzz.py -k 'sample or kip_853' -n 2

# Memory errors and undefined behaviour end the process with a report.
test-compiled-sanitized: venv $(SANITIZED_STAMP)
	PYTHONPATH=$(SANITIZED_SITE) PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 \
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
		$(BIN)/pytest compiled/tests -n 2

test-compat: venv kafka kadm kcat strace prometheus network $(KAFKA_ARCHIVES) $(SPARK_ARCHIVE)
	@echo 'make: running the tests with Kafka and Spark, with three processes'
	$(BIN)/pytest compat -n 3 --dist loadfile --no-loadscope-reorder

# OPTIONS are those of `python -m tests.sim.campaign --help`; the result is tests/sim/campaign.txt.
campaign: venv
	@$(BIN)/python -m tests.sim.campaign $(OPTIONS)

campaign-brokers: venv kafka
	@$(BIN)/python -m compat.campaigns.rolling_restart $(OPTIONS)

# OPTIONS are those of `python -m compat.campaigns.exporters --help`: `make campaign-exporters OPTIONS="--faults 10 --minutes 2"`.
campaign-exporters: venv kafka kcat network $(KAFKA_ARCHIVES)
	@$(BIN)/python -m compat.campaigns.exporters $(OPTIONS)

# OPTIONS are those of `python -m compat.campaigns.strangers --help`: `make campaign-strangers OPTIONS="--minutes 4 --seed 7"`.
campaign-strangers: venv
	@$(BIN)/python -m compat.campaigns.strangers $(OPTIONS)

# OPTIONS are those of `python -m compat.judges.behaviour --help`: `make campaign-behaviour OPTIONS="--scripts 100"`.
campaign-behaviour: venv kafka $(KAFKA_ARCHIVES)
	@$(BIN)/python -m compat.judges.behaviour --scripts 2000 --result compat/campaigns/behaviour.txt --table $(OPTIONS)

check: venv
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m codegen generate --check
	$(BIN)/python -m codegen.config_facts generate --check
	$(BIN)/pytest --quiet tests/test_structure.py

format: venv
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# OPTIONS are those of `python -m compat.benches.controller --help`: `make bench OPTIONS="--only quorum large"`.
bench: venv kafka $(COMPILED_STAMP)
	@$(BIN)/python -m compat.benches.controller $(OPTIONS)

# OPTIONS are those of `python -m compat.benches.scale --help`: `make bench-scale OPTIONS="--partitions 2000000 --brokers 10"`.
bench-scale: venv kafka
	@$(BIN)/python -m compat.benches.scale $(OPTIONS)

# OPTIONS are those of `python -m compat.benches.codec --help`: `make bench-codec OPTIONS=--quick`.
bench-codec: venv $(KAFKA)/4.4.0/.complete $(TOOL_SERVER_STAMP) $(COMPILED_STAMP)
	@$(BIN)/python -m compat.benches.codec --compiled $(COMPILED_SITE) $(OPTIONS)

# OPTIONS are those of `python -m compat.benches.spark --help`: `make bench-spark OPTIONS="--only decode"`.
bench-spark: venv $(KAFKA)/$(KAFKA_TOOLS)/.complete
	@$(BIN)/python -m compat.benches.spark $(OPTIONS)

lock:
	@echo 'make: resolving the dependencies of pyproject.toml (a minute or more)'
	@scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; \
	$(PYTHON) -m venv "$$scratch"; \
	"$$scratch/bin/pip" install --quiet --disable-pip-version-check uv; \
	"$$scratch/bin/uv" pip compile --quiet --upgrade --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
		--group dev --extra spark --extra delta --extra declarative pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) $(KAFKA) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
