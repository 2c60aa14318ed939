"""How far a pull is: layers are downloaded, then unpacked, and each of the two is summed over all of them. Has no clock."""

from dataclasses import dataclass, field

from rocmrun.core.run import PullEvent
from rocmrun.core.text import human_size

# As Docker Engine 20.10 to 28 word them; an event of a layer with another status adds nothing.
_KNOWN = ("Pulling fs layer", "Waiting", "Verifying Checksum")
_HERE = "Already exists"
_DOWNLOADING, _DOWNLOADED = "Downloading", "Download complete"
_UNPACKING, _UNPACKED = "Extracting", "Pull complete"


@dataclass(slots=True)
class Phase:
    """Bytes and layers of one phase.

    Attributes:
        layers: Layer → (bytes done, bytes in all) where the engine names bytes; not every engine does.
        ended: Layers that are through.
    """

    layers: dict[str, tuple[int, int]] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)

    @property
    def bytes_done(self) -> int:
        """Bytes that are through."""
        return sum(done for done, _ in self.layers.values())

    @property
    def bytes_total(self) -> int:
        """Bytes of all layers that have begun."""
        return sum(total for _, total in self.layers.values())

    def add(self, event: PullEvent) -> None:
        """Take how far a layer is."""
        done, total = event.current or 0, event.total
        if total:
            self.layers[event.layer] = (min(done, total), total)
        elif done:
            self.layers[event.layer] = (done, max(done, self.layers.get(event.layer, (0, 0))[1]))

    def end(self, layer: str) -> None:
        """Take that a layer is through."""
        self.ended.add(layer)
        if layer in self.layers:
            total = self.layers[layer][1]
            self.layers[layer] = (total, total)

    def words(self, what: str, layers: int) -> str:
        """Return "downloaded 1.5 GiB of 3 GiB, 4 of 12 layers"; without bytes where the engine names none."""
        counted = f"{len(self.ended)} of {layers} layer{'' if layers == 1 else 's'}"
        if not self.bytes_total:
            return f"{what} {counted}"
        sizes = f"{human_size(self.bytes_done)} of {human_size(self.bytes_total)}"
        return f"{what} {sizes}, {counted}"


@dataclass(slots=True)
class PullProgress:
    """What the events of one pull add up to."""

    download: Phase = field(default_factory=Phase)
    unpack: Phase = field(default_factory=Phase)
    _layers: set[str] = field(default_factory=set)

    @property
    def begun(self) -> bool:
        """Whether any layer is known yet."""
        return bool(self._layers)

    def add(self, event: PullEvent) -> None:
        """Take the next event."""
        if not event.layer:
            return
        status = event.status
        if status in (*_KNOWN, _HERE, _DOWNLOADING, _DOWNLOADED, _UNPACKING, _UNPACKED):
            self._layers.add(event.layer)
        if status == _DOWNLOADING:
            self.download.add(event)
        elif status == _UNPACKING:
            self.download.end(event.layer)
            self.unpack.add(event)
        elif status == _DOWNLOADED:
            self.download.end(event.layer)
        elif status in (_UNPACKED, _HERE):
            self.download.end(event.layer)
            self.unpack.end(event.layer)

    def __str__(self) -> str:
        """Return both phases in one line; the second once it has begun."""
        count = len(self._layers)
        told = self.download.words("downloaded", count)
        if self.unpack.layers or self.unpack.ended:
            told += f"; {self.unpack.words('unpacked', count)}"
        return told
