"""Makes the capacity traces of this folder: run it here; the same files come out each time.

The capacity follows a Markov chain over link states (how good the radio is), stepped every slot;
within a state it varies by a first-order autoregressive process in the logarithm (fading), and a
scheduler serves the user in every ``service`` milliseconds, so opportunities come in groups as on
a real radio. Numbers are our choice, in the range of published LTE and HSPA measurements; no
recording went in. Format: Mahimahi's, one opportunity of 1504 bytes per line, in milliseconds.
"""

import gzip
import math
import random
from dataclasses import dataclass
from pathlib import Path

DURATION_MS = 60_000
SLOT_MS = 20
OPPORTUNITY_BITS = 1504 * 8


@dataclass(frozen=True)
class Radio:
    """One direction: mean rates of the states in Mbit/s, mean stay in each in ms, and the fading."""

    seed: int
    states_mbit_s: tuple[float, ...]
    stay_ms: tuple[float, ...]
    deviation: float
    """Standard deviation of the rate's natural logarithm within a state."""
    correlation_ms: float
    """Time in which the autocorrelation of the fading falls to 1/e."""
    service_ms: int
    """Period of the scheduler."""


RADIOS = {
    "lte-varying.down": Radio(101, (34.0, 20.0, 9.0, 2.5), (2500, 3000, 1800, 500), 0.30, 150, 1),
    "lte-varying.up": Radio(102, (13.0, 8.0, 4.0, 1.2), (2500, 3000, 1800, 500), 0.25, 150, 4),
    "hspa-varying.down": Radio(201, (5.5, 3.0, 1.2, 0.0), (2500, 3500, 1500, 350), 0.35, 250, 2),
    "hspa-varying.up": Radio(202, (1.5, 0.9, 0.4, 0.0), (2500, 3500, 1500, 350), 0.25, 250, 10),
}


def opportunities(radio: Radio) -> list[int]:
    """Times of the opportunities in ms; the last one is at the end of the trace."""
    random_stream = random.Random(radio.seed)
    decay = math.exp(-SLOT_MS / radio.correlation_ms)
    innovation = radio.deviation * math.sqrt(1 - decay * decay)
    state, fading, credit = 1, 0.0, 0.0
    times = []
    for now in range(1, DURATION_MS + 1):
        if now % SLOT_MS == 0:
            fading = decay * fading + innovation * random_stream.gauss(0, 1)
            if random_stream.random() < SLOT_MS / radio.stay_ms[state]:
                # A neighbouring state: radio conditions change step by step.
                up = random_stream.random() < 0.5
                state = min(max(state + (1 if up else -1), 0), len(radio.stay_ms) - 1)
        # The mean of a lognormal is exp(variance / 2) above its median.
        rate = radio.states_mbit_s[state] * math.exp(fading - radio.deviation**2 / 2)
        credit += rate * 1000
        if now % radio.service_ms == 0:
            count = int(credit / OPPORTUNITY_BITS)
            credit -= count * OPPORTUNITY_BITS
            times += [now] * count
    if times[-1] != DURATION_MS:
        times.append(DURATION_MS)
    return times


if __name__ == "__main__":
    for name, radio in RADIOS.items():
        times = opportunities(radio)
        text = "".join(f"{time}\n" for time in times).encode()
        Path(__file__).with_name(f"{name}.gz").write_bytes(gzip.compress(text, 9, mtime=0))
        mean = len(times) * OPPORTUNITY_BITS / DURATION_MS / 1000
        print(f"{name}: {len(times)} opportunities, mean {mean:.2f} Mbit/s")
