"""The commands of child processes."""

import ast
import subprocess
from pathlib import Path

import winnow
from winnow.python_command import python_command


def test_the_current_directory_has_no_modules_of_a_child(tmp_path: Path) -> None:
    (tmp_path / "random.py").write_text("raise SystemExit('run')", encoding="utf-8")
    (tmp_path / "winnow").mkdir()
    (tmp_path / "winnow" / "__init__.py").write_text("raise SystemExit('run')", encoding="utf-8")
    command = python_command("winnow", "--version")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("winnow ")


def test_no_other_module_names_the_interpreter() -> None:
    """A command that another module writes could lack the option."""
    package = Path(winnow.__file__).parent
    modules = [
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Attribute) and node.attr == "executable"
    ]
    assert modules == ["python_command.py"]
