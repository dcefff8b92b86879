"""What passes over a loaded pair cost: kept from an earlier run or measured when first needed, then frozen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from specdec_cli import calibration
from specdec_cli.core.costs import Costs
from specdec_cli.drafters.model import ModelDrafter
from specdec_cli.llama.context import Context
from specdec_cli.loading import Loaded
from specdec_cli.settings import SETTINGS_OF_SPEED, ModelSettings


class PairCosts:
    """Those of a `loaded` pair with `settings`. `frozen` are the ones that decisions rest on, None before the first.

    `progress` hears that it takes a while, `notice` of a machine too busy to keep what was measured.
    """

    def __init__(
        self,
        loaded: Loaded,
        settings: ModelSettings,
        progress: Callable[[str, float | None], object],
        notice: Callable[[str], object],
    ) -> None:
        self.frozen: Costs | None = None
        self._loaded = loaded
        self._settings = settings
        self._progress = progress
        self._notice = notice

    @property
    def _key(self) -> str:
        settings, loaded = asdict(self._settings), self._loaded
        distances = [calibration.to_distance(each.round_trip) for each in loaded.workers.greetings]
        # what was asked for says little of how many layers found room
        layers = [loaded.plan.target.gpu_layers, loaded.plan.draft.gpu_layers]
        settings_of_speed = [settings[name] for name in SETTINGS_OF_SPEED]
        return calibration.key_of(loaded.weights, [*settings_of_speed, *layers, *distances])

    def known(self) -> Costs | None:
        """The frozen ones, or those kept from an earlier run, if there are any."""
        return self.frozen or calibration.load(self._key)

    def find(self, target: Context, draft: Context | None, token: int) -> Costs:
        """The frozen ones: known, or measured now with passes over `token`, which empties both contexts."""
        if self.frozen is None:
            self.frozen = calibration.find_costs(
                self._key,
                lambda: _measure(target, draft, token),
                renew=self._settings.recalibrate,
                announce=lambda task: self._progress(task, None),
                notice=self._notice,
            )
        return self.frozen

    def now(self, target: Context, draft: Context | None, token: int) -> Costs:
        """What is measured now, whatever is known; it changes nothing but the contexts, which are empty then."""
        return _measure(target, draft, token).costs


def _measure(target: Context, draft: Context | None, token: int) -> calibration.Measured:
    return calibration.measure(target, {} if draft is None else {ModelDrafter.name: draft}, token)
