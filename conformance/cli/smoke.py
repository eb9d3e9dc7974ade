"""`inorder smoke`: is a driver right, before anything is judged by it?"""

from __future__ import annotations

import click

from conformance.cli import completion
from conformance.cli.options import (
    JSON,
    NeedsTarget,
    format_option,
    print_human,
    print_json,
    target_config_option,
)
from conformance.cli.people import tell, watching
from conformance.reports.schemas import LIST_SCHEMA
from specs.errors import EXIT_UPHELD


@click.command(name="smoke", cls=NeedsTarget)
@click.option(
    "--target",
    required=True,
    metavar="TARGET",
    shell_complete=completion.target,
    help="One whose clients are drivers: `exec:COMMAND`, `rocketmq-local:5.4.0+java:5.4.0`, `kafka-local:4.3.1`, "
    "`nats-local:2.15.2`, `redis-local:7.0.15`, `rabbitmq-local:3.10.8`, `sqs-local:1.6.11`.",
)
@target_config_option
@format_option()
def command(target: str, form: str) -> int:
    """Try a driver: its manners, and whether it tells what happens.

    Exits with 0 when it is right, 64 when the driver is wrong, 69 when it died, kept silent
    or refused.
    """
    from conformance.drivers.smoke import smoke

    with watching() as watch:
        checks = smoke(target, watch.say)
    wrong = [check for check in checks if not check.ok]
    if form == JSON:
        items = [{"name": check.name, "ok": check.ok, "why": check.why} for check in checks]
        print_json({"schema": LIST_SCHEMA, "items": items})
    else:
        print_human(
            "\n".join(
                f"{'ok   ' if c.ok else 'WRONG'} {c.name}{': ' if c.why else ''}{c.why}"
                for c in checks
            )
        )
    tell(
        f"{len(wrong)} of {len(checks)} expectations failed"
        if wrong
        else f"all {len(checks)} expectations hold"
    )
    return min((check.exit_code for check in wrong), default=EXIT_UPHELD)
