"""terminal.py: a program on a terminal of its own, and all that it shows there.

The terminal stays open here until the program has ended and what it wrote last was read: where the last
one to close a terminal is the program itself, a kernel may lose its last line."""
import fcntl, os, pty, select, struct, subprocess, termios

END = b"\0the end\0" # written after the program's last line, so that all before it has been read

class Terminal:
    """`command` on a terminal `columns` wide; its standard output goes to `out`, if given."""

    def __init__(self, columns, command, out=None, env=None):
        self.master, self.slave = pty.openpty()
        self.resize(columns)
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out or self.slave,
                                      stderr=self.slave, env=env)
        self.shown, self.ended = b"", False

    def resize(self, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def read(self):
        """Adds to `shown` what came within a hundredth of a second; False once the program has ended
        and all of it was read."""
        ready, _, _ = select.select([self.master], [], [], 0 if self.ended else 0.01)
        if ready:
            self.shown += os.read(self.master, 65536)
        elif not self.ended and self.child.poll() is not None:
            os.write(self.slave, END)
            self.ended = True
        if not self.ended or not self.shown.endswith(END):
            return True
        self.shown = self.shown[:-len(END)]
        os.close(self.slave)
        os.close(self.master)
        return False

def on_terminal(columns, command):
    """(exit code, bytes shown)"""
    terminal = Terminal(columns, command)
    while terminal.read():
        pass
    return terminal.child.returncode, terminal.shown
