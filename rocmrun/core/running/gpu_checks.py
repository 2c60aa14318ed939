"""The checks of each GPU that a container was given: use, clocks, throttling, heat, link, and who else is there."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rocmrun.core.doctor import Check, Result
from rocmrun.core.running.gpu_metrics import POWER_LIMIT, Throttling, shares
from rocmrun.core.running.observation import Observation, Spread
from rocmrun.core.running.sensors import Temperature
from rocmrun.core.text import human_size

# Bounds of ours: below the first a GPU idles, above the second it works hard enough for its clock to count.
IDLE_PERCENT, WORKING_PERCENT = 5, 50
SLOW_CLOCK = 0.5
FULL_VRAM = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What is said of one GPU."""

    result: Result
    sentence: str
    hint: str = ""
    kind: str = ""


def gpu_checks(seen: Observation) -> Iterator[Check]:
    """Yield the checks of every GPU, those with the same result together."""
    for check_id, looked_at, judge in _ASPECTS:
        said = [judge(seen, position) for position in range(len(seen.gpus))]
        yield from _together(seen, check_id, looked_at, said)


def _together(seen: Observation, check_id: str, looked: str, said: list[Said]) -> Iterator[Check]:
    groups: dict[tuple[Result, str, str], dict[str, list[str]]] = {}
    for gpu, each in zip(seen.gpus, said, strict=True):
        sentences = groups.setdefault((each.result, each.hint, each.kind), {})
        sentences.setdefault(each.sentence, []).append(str(gpu.index))
    for (result, hint, kind), sentences in groups.items():
        evidence = "; ".join(
            f"GPU {', '.join(indexes)}: {sentence}" for sentence, indexes in sentences.items()
        )
        yield Check(
            id=check_id, looked_at=looked, result=result, evidence=evidence, hint=hint, kind=kind
        )


def is_idle(busy: Spread | None) -> bool:
    """Whether a GPU did next to nothing; False where it is not known."""
    return busy is not None and busy.mean < IDLE_PERCENT


def words(spread: Spread, unit: str) -> str:
    """Return "97 to 99 %", or "0 %" where nothing changed."""
    least, most = f"{spread.least:.0f}", f"{spread.most:.0f}"
    return f"{most} {unit}" if least == most else f"{least} to {most} {unit}"


def _unread(seen: Observation, position: int, name: str) -> str:
    reason = seen.last.sensors[position].unread.get(name, "it holds no number")
    return f"{name}: {reason}"


def _busy(seen: Observation, position: int) -> Said:
    busy = seen.spread(position, lambda sensors: sensors.busy_percent)
    if busy is None:
        return Said(result="unknown", sentence=_unread(seen, position, "gpu_busy_percent"))
    memory = seen.spread(position, lambda sensors: sensors.memory_busy_percent)
    parts = [f"busy {words(busy, '%')} in {len(seen.samples)} samples"]
    if busy.least != busy.most:
        parts.append(f"{busy.mean:.0f} % on average")
    if memory:
        parts.append(f"memory busy {words(memory, '%')}")
    gpu = seen.gpus[position]
    if gpu.partition is not None:
        mode = gpu.compute_partition or "a mode that is not known"
        parts.append(f"of the whole GPU, of which this is partition {gpu.partition} in {mode}")
    return Said(result="ok", sentence=", ".join(parts))


def _memory(seen: Observation, position: int) -> Said:
    last = seen.last.sensors[position]
    if last.vram_used is None or not last.vram_total:
        return Said(result="unknown", sentence=_unread(seen, position, "mem_info_vram_used"))
    share = last.vram_used / last.vram_total
    sentence = f"{human_size(last.vram_used)} of {human_size(last.vram_total)} used"
    # What an APU calls its VRAM is a carve-out, beside which it takes main memory.
    if share >= FULL_VRAM and not seen.gpus[position].apu:
        return Said(result="warn", sentence=sentence, kind="oom-vram",
            hint="give the job less: a smaller batch, or vLLM's --gpu-memory-utilization")  # fmt: skip
    return Said(result="ok", sentence=sentence)


def _clocks(seen: Observation, position: int) -> Said:
    readings = seen.sensors(position)
    highest = max((each.core_clock.highest for each in readings if each.core_clock), default=0)
    core = seen.spread(position, lambda each: each.core_clock.now if each.core_clock else None)
    if core is None:
        return Said(result="unknown", sentence=_unread(seen, position, "pp_dpm_sclk"))
    memory = readings[-1].memory_clock
    beside = (
        f", memory {memory.now} of {memory.highest} MHz"
        if memory and memory.now is not None
        else ""
    )
    busy = seen.spread(position, lambda sensors: sensors.busy_percent)
    works = busy is not None and busy.mean >= WORKING_PERCENT
    if busy and works and core.most < SLOW_CLOCK * highest:
        place = f"/sys/class/drm/renderD{seen.gpus[position].render_minor}/device"
        return Said(
            result="warn",
            sentence=f"clock held at {words(core, 'MHz')} of {highest} MHz while {busy.mean:.0f} % busy{beside}",
            hint=f"cat {place}/power_dpm_force_performance_level",
        )
    return Said(result="ok", sentence=f"{words(core, 'MHz')} of {highest} MHz{beside}")


def _throttling(seen: Observation, position: int) -> Said:
    readings = [sensors.throttling for sensors in seen.sensors(position)]
    counted = shares(readings[0], readings[-1])
    if counted is not None:
        return _shares_said(counted)
    told = [reading.now for reading in readings if reading.now is not None]
    if not told:
        return Said(
            result="unknown", sentence=_why(readings[-1], _unread(seen, position, "gpu_metrics"))
        )
    held = [now for now in told if now]
    if not held:
        return Said(result="ok", sentence=f"not throttled in {len(told)} samples")
    reasons = tuple(dict.fromkeys(reason for now in held for reason in now))
    sentence = f"throttled in {len(held)} of {len(told)} samples: {', '.join(reasons)}"
    return _judged(sentence, reasons)


def _why(last: Throttling, unread: str) -> str:
    if last.cycles is not None:
        return "the firmware's counters did not move between the samples"
    return last.problem or unread


def _shares_said(counted: dict[str, float]) -> Said:
    reasons = {name: percent for name, percent in counted.items() if percent > 0}
    if not reasons:
        return Said(result="ok", sentence="not throttled")
    told = ", ".join(f"{name} {max(1, round(percent))} %" for name, percent in reasons.items())
    return _judged(f"throttled for part of the time: {told}", tuple(reasons))


def _judged(sentence: str, reasons: tuple[str, ...]) -> Said:
    if reasons == (POWER_LIMIT,):
        # Full load brings a GPU to its power limit: that is how its clock is meant to be set.
        return Said(result="ok", sentence=f"{sentence}, as full load brings it")
    hint = "look after cooling and power of the machine; sudo dmesg | grep -i amdgpu"
    return Said(result="warn", sentence=sentence, hint=hint)


def _heat(seen: Observation, position: int) -> Said:
    power = seen.spread(position, lambda sensors: sensors.power_watts)
    last = seen.last.sensors[position]
    parts = []
    if power:
        cap = f" of {last.power_cap_watts:.0f} W" if last.power_cap_watts else ""
        parts.append(f"{words(power, 'W')}{cap}")
    hottest = _hottest(seen, position)
    parts += [f"{each.label} {each.celsius} °C" for each in hottest]
    if not parts:
        return Said(result="unknown", sentence="its hwmon directory shows neither power nor heat")
    hot = [each for each in hottest if each.critical and each.celsius >= each.critical]
    if hot:
        return Said(
            result="warn",
            sentence=f"{', '.join(parts)}; {hot[0].label} is at its limit of {hot[0].critical} °C",
            hint="look after the cooling of the machine",
        )
    return Said(result="ok", sentence=", ".join(parts))


def _hottest(seen: Observation, position: int) -> list[Temperature]:
    """Return the highest reading of each sensor."""
    found: dict[str, Temperature] = {}
    for sensors in seen.sensors(position):
        for each in sensors.temperatures:
            if each.label not in found or each.celsius > found[each.label].celsius:
                found[each.label] = each
    return list(found.values())


def _link(seen: Observation, position: int) -> Said:
    last = seen.last.sensors[position]
    if not last.link_width or not last.link_width_max:
        return Said(result="unknown", sentence=_unread(seen, position, "current_link_width"))
    hint = f"sudo lspci -vv -s {seen.gpus[position].pci_address}"
    now, most = last.link_speed or "a speed that is not known", last.link_speed_max
    sentence = f"{last.link_width} lanes at {now}"
    if last.link_width < last.link_width_max:
        return Said(result="warn", sentence=f"{sentence}, of {last.link_width_max}", hint=hint)
    busy = seen.spread(position, lambda sensors: sensors.busy_percent)
    # An idle link slows down to save power.
    if most and last.link_speed not in {None, most} and busy and busy.mean >= WORKING_PERCENT:
        return Said(result="warn", sentence=f"{sentence}, of {most}, under load", hint=hint)
    return Said(result="ok", sentence=sentence)


def _sharing(seen: Observation, position: int) -> Said:
    minor = seen.gpus[position].render_minor
    others = seen.others.get(minor, ()) if minor is not None else ()
    if others:
        return Said(result="warn", sentence=f"{', '.join(others)} use it as well", kind="gpu-busy",
            hint="rocmrun ps")  # fmt: skip
    if not seen.kfd_listed:
        return Said(result="unknown", sentence="KFD lists no processes here")
    return Said(result="ok", sentence="nobody else has memory or a queue on it")


_ASPECTS: tuple[tuple[str, str, Callable[[Observation, int], Said]], ...] = (
    ("gpu-busy", "gpu_busy_percent and mem_busy_percent", _busy),
    ("gpu-memory", "mem_info_vram_used", _memory),
    ("gpu-clock", "pp_dpm_sclk and pp_dpm_mclk", _clocks),
    ("gpu-throttling", "gpu_metrics", _throttling),
    ("gpu-power", "hwmon", _heat),
    ("gpu-link", "the PCI Express link", _link),
    ("gpu-sharing", "processes that KFD lists", _sharing),
)
