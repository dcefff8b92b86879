"""`specdec doctor`: what this installation and machine have, and what to put right first."""

from specdec_cli.commands import options
from specdec_cli.commands.choosing import choose_pair
from specdec_cli.commands.option_groups import PlacingOptions, grouped
from specdec_cli.errors import EXIT_OK


@grouped
def doctor(
    pair: options.PairArgument = None,
    target: options.Target = None,
    draft: options.Draft = None,
    config: options.Config = None,
    *,
    placing: PlacingOptions,
    json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Say what is installed, what this machine has, whether a pair can run, and what to put right first.

    With --rpc also what workers lend and how far away they are, and which layers would go where.

    The report holds no names of people or machines and no secrets: it can go into a bug report as it is.

    [b]Examples[/b]

    specdec doctor

    specdec doctor -m big.gguf -d small.gguf

    specdec doctor --rpc 127.0.0.1:50052,127.0.0.1:50053
    """
    from specdec_cli.doctor.examination import examine
    from specdec_cli.doctor.findings import find_faults
    from specdec_cli.doctor.json import to_json
    from specdec_cli.doctor.privacy import Privacy
    from specdec_cli.doctor.words import to_text
    from specdec_cli.json_line import to_line
    from specdec_cli.terminal import Terminal

    found = examine(config, lambda: choose_pair(pair, target, draft, config, named="PAIR"), placing.to_placing())
    findings = find_faults(found)
    privacy = Privacy.of_process().of_workers(each.endpoint for each in found.workers)
    text = to_line(privacy.hide_in(to_json(found, findings))) if json else privacy.hide(to_text(found, findings))
    Terminal.of_process().write_text(text)
    return max((finding.exit_code for finding in findings), default=EXIT_OK)
