"""Ways to run code that a file brings, found in the source: what ruff has no rule for as well."""

from __future__ import annotations

import ast

MODULES = {"pickle", "_pickle", "dill", "cloudpickle", "shelve", "marshal", "yaml", "code", "codeop", "pty", "runpy"}
CALLS = {
    "eval", "exec", "compile", "__import__", "builtins.eval", "builtins.exec", "os.system", "os.popen", "joblib.load",
    "torch.load", "torch.jit.load", "torch.hub.load", "pd.read_pickle", "pandas.read_pickle", "pd.eval", "pandas.eval",
    "pd.read_hdf", "numba.eval",
}  # fmt: skip
METHODS = {"to_pickle", "query", "exec_module"}  # of whatever object
LOADERS = {"np.load", "numpy.load"}
PLUGINS = "plugins.py"  # --plugin names a Python file of the user's own, which is meant to be run


def findings(source: str, where: str) -> list[str]:
    """A line for each import or call that could run what a file brings."""
    found = []
    for node in ast.walk(ast.parse(source)):
        reason = _reason(node)
        if reason and not (where.endswith(PLUGINS) and reason == "exec_module"):
            found.append(f"{where}:{getattr(node, 'lineno', 0)}: {reason}")
    return found


def _reason(node: ast.AST) -> str | None:
    if isinstance(node, ast.Import):
        return next((name.name for name in node.names if name.name.partition(".")[0] in MODULES), None)
    if isinstance(node, ast.ImportFrom):
        names = {f"{node.module}.{name.name}" for name in node.names} & CALLS
        return str(node.module) if str(node.module).partition(".")[0] in MODULES else next(iter(names), None)
    return _call(node) if isinstance(node, ast.Call) else None


def _call(node: ast.Call) -> str | None:
    name = ast.unparse(node.func)
    keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
    if name in CALLS:
        return name
    # A search tree's `query` takes a slack; that of a data frame runs a text.
    of_tree = any(keyword.arg == "eps" for keyword in node.keywords)
    if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS and not of_tree:
        return node.func.attr
    if keywords.get("allow_pickle", "False") != "False" or keywords.get("shell", "False") != "False":
        return "allow_pickle or shell"
    return f"{name} without allow_pickle=False" if name in LOADERS and "allow_pickle" not in keywords else None
