"""The fields that a congestion control may write: the kernel's verifier and cc_native.h agree on each.

Each case is a small C file of a user's own. The verifier still refuses or allows the same writes, and the
host's compiler refuses the same ones, because the fields are const there.
"""

from __future__ import annotations

import secrets
import select
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from wirepaint import dataplane
from wirepaint.dataplane.description import Congestion, Run

WRITABLE = [
    "tp->snd_cwnd = 7",
    "tp->snd_cwnd_cnt = 7",
    "tp->snd_cwnd_stamp = 7",
    "tp->snd_ssthresh = 7",
    "sk->sk_pacing_rate = 7",
    "sk->sk_pacing_status = 1",
    "inet_csk(sk)->icsk_ca_priv[12] = 7",
]
CONST = [
    *("snd_cwnd_clamp", "prior_cwnd", "prior_ssthresh", "high_seq", "packets_out", "max_packets_out"),
    *("sacked_out", "lost_out", "retrans_out", "lost", "delivered", "total_retrans", "data_segs_out"),
    *("bytes_acked", "bytes_sent", "bytes_retrans", "snd_una", "snd_nxt", "write_seq", "snd_wnd"),
    *("mss_cache", "srtt_us", "tcp_mstamp", "lsndtime"),
]
"""Fields of tcp_sock that both arms know and neither may write."""
UNKNOWN = ["snd_cwnd_used", "undo_marker", "cwnd_usage_seq", "prr_delivered", "prr_out", "rcv_ssthresh"]
"""Fields of tcp_sock that cc.h does not offer; the verifier refuses them as well."""
HOOKS = {
    "cong_avoid": "void, x_cong_avoid, struct sock *sk, u32 ack, u32 acked",
    "ssthresh": "u32, x_ssthresh, struct sock *sk",
    "undo_cwnd": "u32, x_undo_cwnd, struct sock *sk",
    "init": "void, x_init, struct sock *sk",
    "release": "void, x_release, struct sock *sk",
    "pkts_acked": "void, x_pkts_acked, struct sock *sk, const struct ack_sample *sample",
    "in_ack_event": "void, x_in_ack_event, struct sock *sk, u32 flags",
    "cwnd_event": "void, x_cwnd_event, struct sock *sk, enum tcp_ca_event event",
    "set_state": "void, x_set_state, struct sock *sk, u8 state",
    "min_tso_segs": "u32, x_min_tso_segs, struct sock *sk",
}
MANDATORY = ("cong_avoid", "ssthresh", "undo_cwnd")
NO_WRITE = "no write support"


def source(statement: str, hook: str = "cong_avoid", declarations: str = "") -> str:
    """A congestion control whose ``hook`` holds ``statement``."""
    bodies = []
    hooks = [*MANDATORY, *([hook] if hook not in MANDATORY else [])]
    for name in hooks:
        body = f"struct tcp_sock *tp = tcp_sk(sk);\n\t(void)tp;\n\t{statement};" if name == hook else ""
        end = "\n\treturn 2;" if HOOKS[name].startswith("u32") else ""
        bodies.append(f"CC_HOOK({HOOKS[name]})\n{{\n\t{body}{end}\n}}\n")
    ops = ", ".join(f".{name} = CC_OP(x_{name})" for name in hooks)
    return f'#include "cc.h"\n{declarations}\n' + "\n".join(bodies) + f'\nCC_REGISTER("a case", {ops})\n'


def only_in_bpf(statement: str) -> str:
    """``statement`` for the kernel alone, so that the host's compiler does not refuse it first."""
    return f"\n#ifdef __bpf__\n\t{statement};\n#endif\n\t"


@dataclass(frozen=True)
class Attempt:
    """Exit code (None: it loaded and serves) and standard error."""

    code: int | None
    said: str


@pytest.fixture
def compile_natively(tmp_path: Path):
    def attempt(text: str) -> Attempt:
        path = tmp_path / "x.c"
        path.write_text(text)
        done = subprocess.run(
            [dataplane.program(), "cc", "list", path], capture_output=True, text=True, check=False
        )
        return Attempt(done.returncode, done.stderr)

    return attempt


@pytest.fixture
def load(root: None, tmp_path: Path):
    """Loads a C file into the kernel and lets it go again."""

    def attempt(text: str) -> Attempt:
        path = tmp_path / "x.c"
        path.write_text(text)
        congestion = [Congestion(algorithm=str(path), name=f"x.{secrets.token_hex(3)}")]
        run = Run(id="verifier", trace_dir=tmp_path, work_dir=tmp_path, congestion=congestion)
        run_file = run.write()
        with subprocess.Popen(
            [dataplane.program(), "cc", "load", run_file],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            select.select([process.stdout], [], [], 60)
            if "ready" in process.stdout.readline():
                process.terminate()
                process.communicate()
                return Attempt(None, "")
            return Attempt(process.wait(), process.communicate()[1])

    return attempt


@pytest.mark.parametrize("statement", WRITABLE)
def test_what_may_be_written_loads_in_both_arms(load, compile_natively, statement: str) -> None:
    assert compile_natively(source(statement)).code == 0
    assert load(source(statement)) == Attempt(None, "")


@pytest.mark.parametrize("field", CONST)
def test_what_the_verifier_refuses_is_const_natively(load, compile_natively, field: str) -> None:
    natively = compile_natively(source(f"tp->{field} = 7"))
    assert natively.code == 2
    assert "x.c:" in natively.said and "read-only" in natively.said
    loaded = load(source(only_in_bpf(f"tp->{field} = 7")))
    assert loaded.code == 1
    assert NO_WRITE in loaded.said


@pytest.mark.parametrize("field", UNKNOWN)
def test_fields_that_are_not_offered_could_not_be_written_either(load, field: str) -> None:
    declared = (
        "#ifdef __bpf__\n"
        f"struct tcp_sock___more {{ u32 {field}; }} __attribute__((preserve_access_index));\n"
        "#endif"
    )
    loaded = load(source(only_in_bpf(f"((struct tcp_sock___more *)tp)->{field} = 7"), declarations=declared))
    assert loaded.code == 1
    assert NO_WRITE in loaded.said


def test_the_timeout_cannot_be_written(load, compile_natively) -> None:
    statement = "inet_csk(sk)->icsk_rto = 7"
    assert "read-only" in compile_natively(source(statement)).said
    assert NO_WRITE in load(source(only_in_bpf(statement))).said


def test_the_sample_of_an_ack_cannot_be_written(load, compile_natively) -> None:
    statement = "((struct ack_sample *)sample)->rtt_us = 7"
    assert compile_natively(source("sample->rtt_us = 7", "pkts_acked")).code == 2
    assert load(source(only_in_bpf(statement), "pkts_acked")).code == 1


@pytest.mark.parametrize("hook", HOOKS)
def test_the_same_holds_in_every_hook(load, hook: str) -> None:
    assert load(source("tp->snd_cwnd = 7", hook)) == Attempt(None, "")
    assert NO_WRITE in load(source(only_in_bpf("tp->snd_cwnd_clamp = 7"), hook)).said


@pytest.mark.parametrize("missing", MANDATORY)
def test_a_congestion_control_without_a_mandatory_hook_is_refused(compile_natively, missing: str) -> None:
    text = (
        source("").replace(f".{missing} = CC_OP(x_{missing})", "").replace("(, ", "(").replace(", , ", ", ")
    )
    text = text.replace('"a case", )', '"a case")').replace(", )", ")")
    refused = compile_natively(text)
    assert refused.code == 2
    # An unused hook is an error of the compiler's; both name the hook.
    assert missing in refused.said


LOCKED = """
struct value { struct bpf_spin_lock lock; u32 count; };
struct {
	__uint(type, %s);
	__uint(max_entries, 8);
	__type(key, u32);
	__type(value, struct value);
} values SEC(".maps");
"""


@pytest.mark.parametrize(("kind", "loads"), [("BPF_MAP_TYPE_HASH", True), ("BPF_MAP_TYPE_LRU_HASH", False)])
def test_a_lock_needs_a_map_that_keeps_its_values(load, kind: str, loads: bool) -> None:
    numbers = {"BPF_MAP_TYPE_HASH": 1, "BPF_MAP_TYPE_LRU_HASH": 9}
    declared = '#include "cc_group.h"\n#ifdef __bpf__\n' + LOCKED % numbers[kind] + "#endif\n"
    use = "u32 key = 0; struct value *value = bpf_map_lookup_elem(&values, &key);" + (
        " if (value) { bpf_spin_lock(&value->lock); value->count++; bpf_spin_unlock(&value->lock); }"
    )
    assert (load(source(only_in_bpf(use), declarations=declared)).code is None) == loads


def test_nothing_may_be_called_while_a_lock_is_held(load) -> None:
    declared = '#include "cc_group.h"\n#ifdef __bpf__\n' + LOCKED % 1 + "#endif\n"
    use = (
        "u32 key = 0; struct value *value = bpf_map_lookup_elem(&values, &key);"
        " if (value) { bpf_spin_lock(&value->lock); value->count = bpf_get_prandom_u32();"
        " bpf_spin_unlock(&value->lock); }"
    )
    refused = load(source(only_in_bpf(use), declarations=declared))
    assert refused.code == 1
    assert "lock" in refused.said


@pytest.mark.parametrize(("hook", "loads"), [("init", True), ("release", False)])
def test_socket_options_may_be_set_but_not_while_the_connection_ends(load, hook: str, loads: bool) -> None:
    use = "int value = 100; bpf_setsockopt(sk, 6 /* SOL_TCP */, 1002 /* clamp */, &value, sizeof(value))"
    assert (load(source(only_in_bpf(use), hook)).code is None) == loads
