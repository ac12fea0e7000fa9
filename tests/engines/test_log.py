from __future__ import annotations

import pytest

from tests.engines.builds import log_lines
from tuirig.engines.llamacpp.log import (
    failure_cause,
    loading_line,
    memory_parts,
    plain,
    silent_drafter,
)
from tuirig.records import MemoryParts


@pytest.mark.parametrize(
    ("name", "returncode", "message", "evidence", "hint"),
    [
        (
            "missing",
            1,
            "the target /nope/x.gguf can't be opened: No such file or directory",
            "failed to open GGUF file",
            "path",
        ),
        ("notgguf", 1, "the target notgguf.gguf is no GGUF file", "invalid magic", "again"),
        ("truncated", 1, "the target trunc.gguf is cut short", "file bounds", "again"),
        ("unknown", 1, "this build has no flag --not-a-flag", "invalid argument", "args"),
        ("badvalue", 1, "-c is refused: stoi", "handling argument", "args"),
        (
            "removed",
            1,
            "--draft-max was removed from this build: use --spec-draft-n-max or"
            " --spec-ngram-mod-n-max",
            "has been removed",
            "args",
        ),
        ("badtype", 1, "this build has no speculative type mtp", "unknown speculative", "build"),
        ("device", 1, "this build sees no device CUDA0", "invalid device", "--list-devices"),
        ("vcache", 1, "a quantised V cache needs flash attention", "quantized V", "-fa"),
        (
            "draftmissing",
            1,
            "the drafter /nope/d.gguf can't be opened: No such file or directory",
            "/nope/d.gguf",
            "path",
        ),
        ("drafttrunc", 1, "the drafter trunc-draft.gguf is cut short", "file bounds", "again"),
        ("nomtp", 1, "the target has no MTP layers inside", "MTP layers", "drafter file"),
        (
            "assistant-elsewhere",
            -11,
            "it crashed (segmentation fault) while it loaded a gemma4-assistant drafter",
            "creating non-SWA",
            "gemma4 target",
        ),
        ("dflash", -6, "an assertion failed: the drafter is not of this type", "DFlash", "type"),
        (
            "assistant-simple",
            None,
            "the drafter fails on every request",
            "failed to process speculative batch",
            "draft-mtp",
        ),
    ],
)
def test_recorded_failures(
    name: str, returncode: int | None, message: str, evidence: str, hint: str
) -> None:
    cause = failure_cause(log_lines(name), returncode)
    assert cause.message.startswith(message)
    assert any(evidence in line for line in cause.evidence)
    assert hint in cause.hint
    assert not cause.port_in_use


#: Lines that this machine can't produce: from issue threads and llama.cpp's source.
@pytest.mark.parametrize(
    ("line", "returncode", "message"),
    [
        (
            "0.00.003.071 E srv start: couldn't bind HTTP server socket, hostname: 127.0.0.1,"
            " port: 34411",
            1,
            "port 34411 is in use",
        ),
        (
            'error while handling environment variable "LLAMA_ARG_DRAFT_MAX": the argument has'
            " been removed",
            1,
            "the environment variable LLAMA_ARG_DRAFT_MAX is refused",
        ),
        (
            "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9999.00 MiB on device 0:"
            " cudaMalloc failed: out of memory",
            1,
            "the card has not enough free memory",
        ),
        (
            "ggml_vulkan: Device memory allocation of size 1073741824 failed.",
            1,
            "the card has not enough free memory",
        ),
        (
            "ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate CPU buffer of size 8",
            1,
            "there is not enough memory",
        ),
        ("ggml/src/ggml-cuda/fattn.cu:110: fatal error", -6, "flash attention failed"),
        (
            "ggml-backend.cpp:809: pre-allocated tensor (cache_k_l3) in a buffer (CUDA0) that"
            " cannot run the operation (NONE)",
            -6,
            "drafter and target are on different devices",
        ),
        ("ggml.c:9: GGML_ASSERT(ggml_can_mul_mat(a, b)) failed", -6, "an assertion failed"),
        ("x.cpp:1: GGML_ASSERT(n >= 0) failed", -6, "an assertion failed: n >= 0"),
        (
            "0.00.1.1 E llama_model_load: error loading model: unknown model architecture:"
            " 'gemma9'",
            1,
            "this build does not know the architecture gemma9",
        ),
        (
            "llama-server: error while loading shared libraries: libcudart.so.12: cannot open"
            " shared object file",
            127,
            "the program needs the library libcudart.so.12",
        ),
        ("CUDA error: unspecified launch failure", -6, "CUDA error: unspecified launch failure"),
        ("loading", -9, "it was killed (SIGKILL)"),
        ("loading", -4, "it was built for another processor"),
        ("loading", -11, "it crashed (segmentation fault)"),
        ("loading", -6, "it gave up (abort)"),
        ("loading", 3, "the log does not say why"),
    ],
)
def test_failures_of_other_machines(line: str, returncode: int, message: str) -> None:
    cause = failure_cause(["first line", line], returncode)
    assert cause.message.startswith(message)
    assert cause.evidence[-1] == line
    assert cause.port_in_use == ("bind" in line)
    assert cause.known == (returncode != 3)
    assert cause.out_of_memory == ("memory" in message or returncode == -9)


def test_an_unknown_failure_is_told_by_its_first_error() -> None:
    lines = [
        "0.00.000.001 I srv llama_server: starting",
        "0.00.000.002 E llama_init_from_model: failed to initialize the context: Gemma4Assistant"
        " requires ctx_other to be set (this warning is normal during memory fitting)",
        "0.00.000.003 E llama_model_load: something new broke",
        "0.00.000.004 E srv  llama_server: exiting due to model loading error",
    ]
    cause = failure_cause(lines, 1)
    assert cause.message == "something new broke"
    assert cause.evidence == tuple(lines[2:])


@pytest.mark.parametrize("name", ["mtp", "inside", "simple"])
def test_a_drafter_that_works_is_not_silent(name: str) -> None:
    assert silent_drafter(log_lines(name)) == ()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("vocab", "draft model vocab type must match target model"),
        ("simple-nofile", "draft-simple requires a draft context"),
        ("eagle-wrong", "draft model is not eagle3"),
    ],
)
def test_a_server_that_is_up_but_will_not_draft(name: str, reason: str) -> None:
    assert reason in silent_drafter(log_lines(name))[-1]


def test_translated_vocabularies_draft() -> None:
    line = (
        "the target and draft vocabs are not compatible - tokens will be translated between the two"
    )
    assert silent_drafter([line]) == ()


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        # Weights 1.99 + 1.97 (repacked), compute 7.00 (reserved twice), output 0.02; its caches
        # are the target's.
        (
            "mtp",
            MemoryParts(target_mib=119.14, drafter_mib=10.98, cache_mib=10.0, buffers_mib=19.04),
        ),
        # The head lies in the target: KV 0.50, compute 9.52, output 0.02.
        (
            "inside",
            MemoryParts(target_mib=88.27, drafter_mib=10.04, cache_mib=6.69, buffers_mib=11.04),
        ),
        (
            "simple",
            MemoryParts(target_mib=92.10, drafter_mib=152.80, cache_mib=45.0, buffers_mib=15.70),
        ),
        (
            "simple-nofile",
            MemoryParts(target_mib=119.14, drafter_mib=None, cache_mib=10.0, buffers_mib=19.04),
        ),
        (  # Vulkan on an NVIDIA H200, -c 32768; NVML gave the process 2108.7 MiB
            "h200-mtp",
            MemoryParts(target_mib=1604.53, drafter_mib=43.20, cache_mib=260.0, buffers_mib=87.02),
        ),
        (  # CUDA there, no drafter, -c 8192; NVML gave the process 2398 MiB
            "h200-cuda",
            MemoryParts(target_mib=1604.53, drafter_mib=None, cache_mib=68.0, buffers_mib=62.02),
        ),
        ("missing", MemoryParts()),
    ],
)
def test_memory_by_purpose(name: str, parts: MemoryParts) -> None:
    assert memory_parts(log_lines(name)) == parts


def test_on_a_card_only_its_own_memory_counts() -> None:
    lines = [
        "load_tensors:   CPU_Mapped model buffer size =   500.00 MiB",
        "load_tensors:        CUDA0 model buffer size =  4000.50 MiB",
        "load_tensors:        CUDA1 model buffer size =  1000.00 MiB",
        "llama_kv_cache:      CUDA0 KV buffer size =   120,25 MiB",
        "llama_kv_cache:      CUDA1 KV buffer size =    20.00 MiB",
        "sched_reserve:       CUDA0 compute buffer size =   100.00 MiB",
        "sched_reserve:   CUDA_Host compute buffer size =    30.00 MiB",
        "llama_context:  CUDA_Host  output buffer size =     1.00 MiB",
        "common_speculative_init_result: loading draft model 'd.gguf'",
        "load_tensors:   CPU_Mapped model buffer size =    60.00 MiB",
        "load_tensors:        CUDA1 model buffer size =    50.00 MiB",
    ]
    assert memory_parts(lines) == MemoryParts(
        target_mib=5000.5, drafter_mib=50.0, cache_mib=140.25, buffers_mib=100.0
    )


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (
            "0.00.038.416 I cmn  common_init_: warming up the model with an empty run",
            "warming up the model with an empty run",
        ),
        (
            "0.00.021.403 I load_tensors:   CPU_Mapped model buffer size =   119.14 MiB",
            "CPU_Mapped model buffer size = 119.14 MiB",
        ),
        ("error: invalid argument: --x", "error: invalid argument: --x"),
    ],
)
def test_a_line_without_its_prefix(line: str, text: str) -> None:
    assert plain(line) == text
    assert loading_line(["first", line, ""]) == text


def test_nothing_to_show_yet() -> None:
    assert loading_line([]) == ""


def test_a_file_that_is_neither_target_nor_drafter_is_named() -> None:
    lines = [
        "0.00.037.121 E gguf_init_from_file: failed to open GGUF file 'advice-lora.gguf'"
        " (No such file or directory)",
        "0.00.037.216 E cmn  common_init_: failed to load lora adapter 'advice-lora.gguf'",
    ]
    found = failure_cause(lines, -11)
    assert found.message == "advice-lora.gguf can't be opened: No such file or directory"
