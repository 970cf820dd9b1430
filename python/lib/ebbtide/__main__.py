"""``python -m ebbtide run FOLDER --shard I/N``: a share of a campaign, for array jobs."""

from __future__ import annotations

import argparse
import sys

from ebbtide import Campaign


def main(arguments: list[str] | None = None) -> int:
    """Run a share of the campaign that a folder is of, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m ebbtide")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run what is missing in a campaign's folder")
    run.add_argument("folder", help="the folder of a Campaign that was saved or begun")
    run.add_argument("--shard", metavar="I/N", default="1/1", help="only part I (from 1) of N")
    run.add_argument("--jobs", type=int, default=None, help="threads [default: one per core]")
    options = parser.parse_args(arguments)
    index, _, of = options.shard.partition("/")
    if not (index.isdigit() and of.isdigit() and 1 <= int(index) <= int(of)):
        parser.error(f"--shard: '{options.shard}' is not I/N with 1 <= I <= N")
    campaign = Campaign.open(options.folder)
    campaign.run(shard=(int(index), int(of)), jobs=options.jobs)
    failed = campaign.failed()
    for failure in failed:
        print(
            f"{failure.cell}, replication {failure.replication}: {failure.error}\n"
            f"    {failure.replay}",
            file=sys.stderr,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
