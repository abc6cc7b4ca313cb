"""A command that takes the command of another program after `--`. Must not run anything."""

import click


class CommandWithChild(click.Command):
    """What stands behind the first `--` goes to `ctx.obj` as a tuple of words; click itself would forget where it
    was."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split the arguments, then parse those before `--`."""
        at = args.index("--") if "--" in args else len(args)
        ctx.obj = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Add the words of the other program to the usage line."""
        return [*super().collect_usage_pieces(ctx), "[-- CMD…]"]
