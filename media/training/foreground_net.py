"""Trains the network for noisy channels, and writes it as `foreground_net.rs` reads it.

Reads what the running detector hears of channels whose truth is known (`media/src/vad/tests/training.rs` writes that): a frame
is 44 whole numbers of 16 bits, the inputs of the network, whether it hears them, and how many of the frame's two blocks are
speech. The network's parts bear the names that they have in `foreground_net.rs`.
"""

import argparse
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

INPUTS, NARROW, STATE, SECOND = 42, 32, 64, 112
GATES, GATES_2 = 3 * STATE, 3 * SECOND
LAGS = (0, 6, 12, 24)
STEP = 1 / 8192
FRAMES = 2000  # of a channel
CHUNK = 250  # frames through which errors are led back
BATCH = 60  # channels at once
KEPT = 0.998  # of the mean of the weights, at each step: the mean is what is written
SHORT, OFTEN = 25, 4.0  # Utterances of fewer frames count so much more: they are what is missed.
SHAPES = {"first": (INPUTS, NARROW), "gates": (NARROW, GATES), "again": (STATE, GATES), "gates_2": (STATE, GATES_2),
          "again_2": (SECOND, GATES_2), "heads": (STATE + SECOND, len(LAGS))}


def fresh(seed):
    chance = np.random.default_rng(seed)
    return {name: jnp.array(np.vstack([chance.normal(0, (1 / rows) ** 0.5, (rows, columns)), np.zeros((1, columns))]),
                            jnp.float32) for name, (rows, columns) in SHAPES.items()}


def read(path):
    """A network as `foreground_net.rs` reads it: of each part the size of a step, then so many steps."""
    data, at, parts = path.read_bytes(), 0, {}
    for name, (rows, columns) in SHAPES.items():
        step = np.frombuffer(data, "<f4", 1, at)[0]
        steps = np.frombuffer(data, "<i2", (rows + 1) * columns, at + 4)
        parts[name] = jnp.array(steps.reshape(rows + 1, columns) * step, jnp.float32)
        at += 4 + steps.nbytes
    return parts


def write(path, parts):
    data = b""
    for name in SHAPES:
        values = np.asarray(parts[name], np.float32)
        step = np.float32(np.abs(values).max() / 32767)
        data += step.tobytes() + np.rint(values / step).astype("<i2").tobytes()
    path.write_bytes(data)


def unit(gates, state, again, heard):
    """A gated recurrent unit: its states from its gates' fresh parts, frames x channels x gates, and the last of them."""

    def frame(state, now):
        gates, heard = now
        width = state.shape[1]
        before = state @ again[:-1] + again[-1]
        keep, reset = jnp.split(jax.nn.sigmoid(gates[:, : 2 * width] + before[:, : 2 * width]), 2, 1)
        new = jnp.tanh(gates[:, 2 * width :] + reset * before[:, 2 * width :])
        state = (new + keep * (state - new)) * heard[:, None]
        return state, state

    return jax.lax.scan(frame, state, (gates, heard))


def judge(parts, states, inputs, heard):
    """Log odds of the heads for frames x channels x inputs, and the states after them. What is not heard leaves no state."""
    narrow = jax.nn.relu(inputs @ parts["first"][:-1] + parts["first"][-1])
    last, one = unit(narrow @ parts["gates"][:-1] + parts["gates"][-1], states[0], parts["again"], heard)
    last_2, two = unit(one @ parts["gates_2"][:-1] + parts["gates_2"][-1], states[1], parts["again_2"], heard)
    return jnp.concatenate((one, two), 2) @ parts["heads"][:-1] + parts["heads"][-1], (last, last_2)


def silent(channels):
    """The states before anything was heard."""
    return jnp.zeros((channels, STATE)), jnp.zeros((channels, SECOND))


def loss(parts, state, inputs, heard, truth, weight):
    odds, state = judge(parts, state, inputs, heard)
    cost = (jnp.logaddexp(0, odds) - truth * odds) * weight
    return (cost * heard[:, :, None]).mean(), state


@jax.jit
def learn(parts, mean_parts, moments, state, batch, rate, count):
    """A step of Adam (Kingma and Ba 2015), its gradient cut at a norm of 1; and of the mean of the weights."""
    (cost, state), slope = jax.value_and_grad(loss, has_aux=True)(parts, state, *batch)
    norm = jnp.sqrt(sum((part**2).sum() for part in slope.values()))
    slope = {name: part * jnp.minimum(1, 1 / norm) for name, part in slope.items()}
    mean = {name: 0.9 * moments[0][name] + 0.1 * slope[name] for name in parts}
    square = {name: 0.999 * moments[1][name] + 0.001 * slope[name] ** 2 for name in parts}
    sizes = {name: (square[name] / (1 - 0.999**count)) ** 0.5 + 1e-8 for name in parts}
    parts = {name: parts[name] - rate * mean[name] / (1 - 0.9**count) / sizes[name] for name in parts}
    mean_parts = {name: KEPT * mean_parts[name] + (1 - KEPT) * parts[name] for name in parts}
    return parts, mean_parts, (mean, square), state, cost


@jax.jit
def errors(parts, state, batch):
    odds, after = judge(parts, state, *batch[:2])
    wrong = ((odds > 0) != (batch[2] > 0.5)) * batch[1][:, :, None]
    return loss(parts, state, *batch)[0], wrong.mean((0, 1)), after


def weights(speech):
    """What each frame counts, frames x channels."""
    counts = np.ones_like(speech)
    for channel, count in zip(speech.T, counts.T):
        edges = np.flatnonzero(np.diff(channel > 0, prepend=False, append=False))
        for begin, end in zip(edges[::2], edges[1::2]):
            count[begin:end] += OFTEN * (end - begin < SHORT)
    return counts


def chunks(channels, which):
    """The chosen channels, chunk by chunk: inputs, whether they are heard, the truth of each head and its weight; frames first."""
    rows = np.ascontiguousarray(channels[which].transpose(1, 0, 2))
    inputs, heard = rows[:, :, :INPUTS] * np.float32(STEP), rows[:, :, INPUTS].astype(np.float32)
    speech = rows[:, :, INPUTS + 1] * np.float32(0.5)
    truth, weight = (np.zeros(speech.shape + (len(LAGS),), np.float32) for _ in range(2))
    counts = weights(speech)
    for head, lag in enumerate(LAGS):
        truth[lag:, :, head], weight[lag:, :, head] = speech[: FRAMES - lag], counts[: FRAMES - lag]
    for at in range(0, FRAMES, CHUNK):
        yield tuple(part[at : at + CHUNK] for part in (inputs, heard, truth, weight))


def held_out(parts, channels):
    state, costs, wrong = silent(len(channels)), [], []
    for batch in chunks(channels, np.arange(len(channels))):
        cost, share, state = errors(parts, state, batch)
        costs.append(cost)
        wrong.append(share)
    return float(np.mean(costs)), np.mean(wrong, 0)


def known(parts):
    """The log odds that the test in `foreground_net.rs` knows, of bands, a score and a level that wave."""
    at, band = np.arange(300)[:, None], np.arange(INPUTS - 2)
    bands = -8 + 3 * np.sin(at * (0.05 + 0.003 * band))
    mean, inputs = bands[0], np.zeros((300, 1, INPUTS), np.float32)
    for n in range(300):
        mean = mean + max(0.004, 1 / (n + 1)) * (bands[n] - mean)
        inputs[n, 0, :-2] = np.clip((bands[n] - mean) / 3, -3, 3)
    inputs[:, :, -2], inputs[:, :, -1] = np.sin(at * 0.11), np.clip(8 * np.sin(at * 0.07), -10, 30) / 10
    odds, _ = judge(parts, silent(1), inputs, jnp.ones((300, 1)))
    return {n: np.round(odds[n, 0], 3).tolist() for n in (9, 99, 299)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="with train.i16 and held.i16")
    parser.add_argument("network", type=Path, help="is written")
    parser.add_argument("--like", type=Path, help="a network to begin with")
    parser.add_argument("--rounds", type=int, default=12, help="how often each channel is heard")
    parser.add_argument("--stop", type=int, help="after so many rounds, which are as those of a longer training")
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    train, held = (np.memmap(args.folder / f"{part}.i16", np.int16, "r") for part in ("train", "held"))
    train, held = (rows[: len(rows) // (FRAMES * 44) * FRAMES * 44].reshape(-1, FRAMES, 44) for rows in (train, held))
    parts = read(args.like) if args.like else fresh(args.seed)
    mean_parts = parts
    moments = tuple({name: jnp.zeros_like(part) for name, part in parts.items()} for _ in range(2))
    chance = np.random.default_rng(args.seed)
    steps, count, began = args.rounds * (len(train) // BATCH), 0, time.monotonic()
    print(f"{len(train)} channels; held out: {held_out(parts, held)}", flush=True)
    for turn in range(args.stop or args.rounds):
        order, costs = chance.permutation(len(train)), []
        for n in range(len(train) // BATCH):
            state = silent(BATCH)
            along = (turn * (len(train) // BATCH) + n) / steps
            rate = args.rate * min(1, along * 50 + 0.02) * (0.5 + 0.5 * np.cos(np.pi * along))
            for batch in chunks(train, np.sort(order[n * BATCH : (n + 1) * BATCH])):
                count += 1
                parts, mean_parts, moments, state, cost = learn(parts, mean_parts, moments, state, batch, rate, float(count))
            costs.append(cost)
        print(f"{turn} {time.monotonic() - began:.0f} s: {np.mean(costs):.4f}; held out: {held_out(mean_parts, held)}", flush=True)
        write(args.network, mean_parts)
    print("foreground_net.rs knows", known(read(args.network)))


if __name__ == "__main__":
    main()
