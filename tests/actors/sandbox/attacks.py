# ruff: noqa: E501 - each attack is one line of a table
"""What code in a sandbox tries, by name; each attack is a few statements that end if it succeeds.

Only a refusal of the kernel (`PermissionError`), or the error that stands beside an attack, counts
as refused: a wrong argument or a missing file shows that nobody refused. The attacks harm nothing
if they succeed. The module uses the standard library only, and is sent into sandboxes as it is.
"""

import ctypes
import os
import platform

_CALLS = {
    "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171), "bpf": (321, 280),
    "capset": (126, 91), "chroot": (161, 51), "clock_settime": (227, 112), "clone": (56, 220),
    "clone3": (435, 435), "delete_module": (176, 106), "execveat": (322, 281),
    "fanotify_init": (300, 262), "finit_module": (313, 273), "flock": (73, 32),
    "fsmount": (432, 432), "fsopen": (430, 430), "futex_waitv": (449, 449),
    "init_module": (175, 105), "inotify_init1": (294, 26), "io_setup": (206, 0),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "io_uring_setup": (425, 425),
    "ioprio_set": (251, 30), "kcmp": (312, 272), "kexec_load": (246, 104), "keyctl": (250, 219),
    "kill": (62, 129), "landlock_create_ruleset": (444, 444), "map_shadow_stack": (453, 453),
    "mbind": (237, 235), "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "migrate_pages": (256, 238), "mlock": (149, 228), "mlockall": (151, 230), "mount": (165, 40),
    "mount_setattr": (442, 442), "move_mount": (429, 429), "move_pages": (279, 239),
    "mq_open": (240, 180), "msgget": (68, 186), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265), "open_tree": (428, 428), "openat2": (437, 437),
    "perf_event_open": (298, 241), "personality": (135, 92), "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pivot_root": (155, 41),
    "pkey_alloc": (330, 289), "prctl": (157, 167), "process_madvise": (440, 440),
    "process_mrelease": (448, 448), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "ptrace": (101, 117), "quotactl": (179, 60),
    "reboot": (169, 142), "recvmmsg": (299, 243), "remap_file_pages": (216, 234),
    "request_key": (249, 218), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "sched_setattr": (314, 274), "seccomp": (317, 277), "semget": (64, 190), "sendmmsg": (307, 269),
    "set_mempolicy": (238, 237), "setdomainname": (171, 162), "setfsuid": (122, 151),
    "sethostname": (170, 161), "setns": (308, 268), "settimeofday": (164, 170),
    "shmget": (29, 194), "splice": (275, 76), "swapoff": (168, 225), "swapon": (167, 224),
    "syslog": (103, 116), "tee": (276, 77), "tgkill": (234, 131), "timer_create": (222, 107),
    "tkill": (200, 130), "umount2": (166, 39), "unshare": (272, 97), "userfaultfd": (323, 282),
    "vhangup": (153, 58), "vmsplice": (278, 75),
}  # fmt: skip

_COLUMN = ("x86_64", "aarch64").index(platform.machine())


def call(name, *values):
    """Make a system call; what it says of wrong arguments is raised as any other error."""
    libc = ctypes.CDLL(None, use_errno=True)
    words = [
        ctypes.c_char_p(one) if isinstance(one, bytes) else ctypes.c_long(one) for one in values
    ]
    number = name if isinstance(name, int) else _CALLS[name][_COLUMN]
    if libc.syscall(ctypes.c_long(number), *words) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def refuses(expression, space):
    """Raise PermissionError if an expression is false: what is looked for is not there."""
    if not eval(expression, space):  # noqa: S307
        raise PermissionError(expression)


HEAD = """
import array, asyncio, ctypes, errno, fcntl, gc, importlib, inspect, io, linecache, mmap, os, resource
import select, shutil, signal, socket, stat, struct, subprocess, sys, tempfile, threading, zipimport
host = os.getppid()
standard = os.path.dirname(os.__file__)
def read(path):
    with open(path, "rb") as file: file.read(1)
def write(path, how="w"):
    with open(path, how): pass
def control(number, value=0, fd=2): fcntl.fcntl(fd, number, value)
def dial(family, address):
    with socket.socket(family) as one: one.connect(address)
def regular():
    found = []
    for one in range(1024):
        try:
            if stat.S_ISREG(os.fstat(one).st_mode): found.append(one)
        except OSError: pass
    return found
"""

_FILES = {
    "a signing key of the checkout": "read(secrets['key'])",
    "a session token of the checkout": "read(secrets['token'])",
    "the folder of keys": "os.listdir(secrets['folder'])",
    "a key by a symbolic link": "read(secrets['link'])",
    "a key by a relative path": "read(os.path.relpath(secrets['key'], '/'))",
    "a key from the standard library": "read(os.path.join(standard, os.path.relpath(secrets['key'], standard)))",
    "a key from an open folder": "os.open(os.path.relpath(secrets['key'], standard), os.O_RDONLY, dir_fd=os.open(standard, os.O_RDONLY))",
    "a key by a loader": "importlib.machinery.SourceFileLoader('key', secrets['key']).get_data(secrets['key'])",
    "a key as a module's source": "assert linecache.getlines(secrets['key']) or not refuses('False', {})",
    "a path descriptor of a key": "os.open(secrets['key'], os.O_PATH)",
    "a key by openat2": "call('openat2', -100, os.fsencode(secrets['key']), b'\\0' * 24, 24)",
    "a key by its handle": "call('name_to_handle_at', -100, os.fsencode(secrets['key']), b'\\0' * 200, b'\\0' * 8, 0)",
    "a handle of a file": "call('open_by_handle_at', -100, b'\\0' * 200, 0)",
    "an extended attribute of a key": "os.getxattr(secrets['key'], 'user.x')",
    "extended attributes of a key": "os.listxattr(secrets['key'])",
    "a file of the checkout": "read(checkout + '/pyproject.toml')",
    "the checkout": "os.listdir(checkout)",
    "the repository": "read(checkout + '/.git')",
    "a source of ours": "read(checkout + '/actors/__init__.py')",
    "a folder of ours": "os.listdir(checkout + '/actors')",
    "the file of this code": "read(checkout + '/tests/actors/sandbox/attacks.py')",
    "a file beside this code": "read(checkout + '/tests/support/runtime/rough.py')",
    "a fixture": "os.listdir(checkout + '/tests/fixtures')",
    "a distribution that is not declared": "read(installed + '/pytest/__init__.py')",
    "a test tool": "read(installed + '/hypothesis/__init__.py')",
    "where the editable install is": "read(installed + '/distutils-precedence.pth')",
    "who starts programs": "os.listdir(os.path.dirname(sys.executable))",
    "the interpreter": "read(sys.executable)",
    "distributions of the interpreter": "read(distribution)",
    "the home": "os.listdir(home)",
    "a file of the home": "read(home_file)",
    "the root": "os.listdir('/')",
    "users": "read('/etc/passwd')",
    "passwords": "read('/etc/shadow')",
    "settings": "os.listdir('/etc')",
    "certificates": "os.listdir('/etc/ssl')",
    "temporary files": "os.listdir('/tmp')",
    "logs": "os.listdir('/var/log')",
    "sockets of services": "os.listdir('/run')",
    "devices": "os.listdir('/dev')",
    "the null device": "write('/dev/null')",
    "messages of the kernel": "os.open('/dev/kmsg', os.O_RDONLY)",
    "the terminal": "os.open('/dev/tty', os.O_RDONLY)",
    "a new terminal": "os.open('/dev/ptmx', os.O_RDONLY)",
    "shared memory in files": "os.listdir('/dev/shm')",
    "a library of the system": ("ctypes.CDLL('libcrypt.so.1')", "OSError"),
}

_PROC = {
    "processes": "os.listdir('/proc')",
    "its own environment": "read('/proc/self/environ')",
    "its own memory": "read('/proc/self/mem')",
    "its own maps": "read('/proc/self/maps')",
    "its own descriptors": "os.listdir('/proc/self/fd')",
    "its own command line": "read('/proc/self/cmdline')",
    "its own program": "os.readlink('/proc/self/exe')",
    "its own root": "os.listdir('/proc/self/root')",
    "the environment of its host": "read(f'/proc/{host}/environ')",
    "the command line of its host": "read(f'/proc/{host}/cmdline')",
    "the memory of its host": "read(f'/proc/{host}/mem')",
    "the maps of its host": "read(f'/proc/{host}/maps')",
    "descriptors of its host": "os.listdir(f'/proc/{host}/fd')",
    "a descriptor of its host": "read(f'/proc/{host}/fd/0')",
    "the folder of its host": "os.readlink(f'/proc/{host}/cwd')",
    "the root of its host": "read(f'/proc/{host}/root/etc/passwd')",
    "connections of the machine": "read('/proc/net/tcp')",
    "a namespace of its host": "os.open(f'/proc/{host}/ns/net', os.O_RDONLY)",
    "symbols of the kernel": "read('/proc/kallsyms')",
    "who is killed first": "write('/proc/self/oom_score_adj', 'r+')",
    "its share of the processor": "write('/proc/self/autogroup', 'r+')",
    "its user map": "write('/proc/self/uid_map', 'r+')",
    "the kernel's settings": "read('/proc/sys/kernel/core_pattern')",
    "the kernel's keys": "write('/proc/sysrq-trigger')",
    "the kernel's objects": "os.listdir('/sys')",
    "control groups": "os.listdir('/sys/fs/cgroup')",
}

_CHANGES = {
    "create a file": "write('/tmp/escaped-by-attack')",
    "create a file in its folder": "write('escaped-by-attack')",
    "create a file among distributions": "write(installed + '/escaped.py')",
    "create a file in the standard library": "write(standard + '/escaped.py')",
    "create a nameless file": "os.open('/tmp', os.O_TMPFILE | os.O_RDWR)",
    "a temporary file": ("tempfile.TemporaryFile()", "FileNotFoundError"),
    "append to a victim": "write(secrets['victim'], 'a')",
    "open a victim to write": "write(secrets['victim'], 'r+')",
    "truncate a victim": "os.truncate(secrets['victim'], 0)",
    "truncate the pipe": "os.ftruncate(0, 0)",
    "remove a victim": "os.unlink(secrets['victim'])",
    "rename a victim": "os.rename(secrets['victim'], secrets['victim'] + '2')",
    "link a victim": "os.link(secrets['victim'], secrets['victim'] + '3')",
    "a symbolic link": "os.symlink('/etc/passwd', secrets['folder'] + '/passwd')",
    "a folder": "os.mkdir(secrets['folder'] + '/new')",
    "remove a folder": "os.rmdir(secrets['folder'] + '/empty')",
    "a named pipe": "os.mkfifo(secrets['folder'] + '/fifo')",
    "who may read a victim": "os.chmod(secrets['victim'], 0o777)",
    "who may use the pipe": "os.fchmod(0, 0o777)",
    "who owns a victim": "os.chown(secrets['victim'], -1, -1)",
    "when a victim was changed": "os.utime(secrets['victim'], (1, 1))",
    "what stands beside a victim": "os.setxattr(secrets['victim'], 'user.x', b'x')",
    "another folder": "os.chdir('/tmp')",
    "another root": "call('chroot', b'/tmp')",
    "a file in memory": "os.memfd_create('x')",
    "a secret file in memory": "call('memfd_secret', 0)",
    "a lock": "fcntl.flock(0, fcntl.LOCK_SH | fcntl.LOCK_NB)",
    "watch files": "call('inotify_init1', 0)",
    "watch all files": "call('fanotify_init', 0, 0)",
    "write everything out": "call(162 if _COLUMN == 0 else 81)",
    "copy between descriptors": "call('splice', 0, 0, 0, 0, 0, 0)",
    "duplicate a pipe's contents": "call('tee', 0, 0, 0, 0)",
    "give pages to a pipe": "call('vmsplice', 0, 0, 0, 0)",
}

_SOCKETS = {
    f"a socket of family {name}": f"socket.socket({number}, socket.SOCK_DGRAM).close()"
    for name, number in {
        "unix": 1, "inet": 2, "ax25": 3, "ipx": 4, "inet6": 10, "key": 15, "netlink": 16,
        "packet": 17, "rds": 21, "can": 29, "tipc": 30, "bluetooth": 31, "alg": 38, "nfc": 39,
        "vsock": 40, "qipcrtr": 42, "smc": 43, "xdp": 44, "mctp": 45,
    }.items()
}  # fmt: skip

_NETWORK = {
    "a raw socket": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "dial its host's machine": "dial(socket.AF_INET, ('127.0.0.1', 22))",
    "dial a socket of a file": "dial(socket.AF_UNIX, secrets['folder'] + '/socket')",
    "dial an abstract socket": "dial(socket.AF_UNIX, '\\0escaped-by-attack')",
    "listen": "socket.create_server(('127.0.0.1', 0))",
    "resolve a name": ("socket.getaddrinfo('localhost', 80, type=socket.SOCK_STREAM)", "gaierror"),
    "a pair of datagrams": "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
    "a pair of packets": "socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)",
    "send elsewhere": "socket.socketpair()[0].sendto(b'', secrets['folder'] + '/socket')",
    "send a descriptor": "socket.socketpair()[0].sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0]))])",
    "receive a descriptor": "socket.socket(fileno=os.dup(0)).recvmsg(0, 100)",
    "send many messages": "call('sendmmsg', 0, 0, 0, 0)",
    "receive many messages": "call('recvmmsg', 0, 0, 0, 0, 0)",
    "connect its pipe elsewhere": "socket.socket(fileno=os.dup(0)).connect('\\0x')",
    "bind its pipe": "socket.socket(fileno=os.dup(0)).bind('\\0escaped')",
    "listen at its pipe": "socket.socket(fileno=os.dup(0)).listen()",
    "accept at its pipe": "socket.socket(fileno=os.dup(0)).accept()",
    "credentials with messages": "socket.socketpair()[0].setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)",
    "a filter on its pipe": "socket.socketpair()[0].setsockopt(socket.SOL_SOCKET, 26, b'\\0' * 16)",
}

_SIGNALS = {
    "a signal to its host": "os.kill(host, 0)",
    "a signal to itself": "os.kill(os.getpid(), 0)",
    "a signal to its group": "os.kill(0, 0)",
    "a signal to all": "os.kill(-1, 0)",
    "a signal to the first process": "os.kill(1, 0)",
    "a signal to a thread of its host": "call('tgkill', host, host, 0)",
    "a signal to a thread": "call('tkill', host, 0)",
    "a queued signal": "call('rt_sigqueueinfo', host, 0, b'\\0' * 128)",
    "a queued signal to a thread": "call('rt_tgsigqueueinfo', host, host, 0, b'\\0' * 128)",
    "a handle of its host": "os.pidfd_open(host)",
    "a signal by a handle": "call('pidfd_send_signal', 0, 0, 0, 0)",
    "a descriptor by a handle": "call('pidfd_getfd', 0, 0, 0)",
    "a signal at input": "control(fcntl.F_SETOWN, host, 0)",
    "a signal at input, by the newer call": "control(15, struct.pack('ii', 1, host), 0)",
    "another signal at input": "control(10, 0, 0)",
    "a signal at input, by control": "fcntl.ioctl(0, 0x8901, struct.pack('i', host))",
    "signals at input": "fcntl.ioctl(0, 0x5452, struct.pack('i', 0))",
    "a signal at a change": "control(fcntl.F_NOTIFY, 0, os.open(standard, os.O_RDONLY))",
    "a lease": "control(fcntl.F_SETLEASE, fcntl.F_UNLCK)",
    "a larger pipe": "control(1031, 1 << 20, os.pipe()[1])",
    "a seal": "control(1033)",
    "a record lock": "fcntl.lockf(2, fcntl.LOCK_EX | fcntl.LOCK_NB)",
    "type at a terminal": "fcntl.ioctl(2, 0x5412, b'x')",
    "become its terminal's owner": "fcntl.ioctl(2, 0x540E, 0)",
    "a timer with a signal": "call('timer_create', 0, b'\\0' * 64, b'\\0' * 8)",
}

_PROCESSES = {
    "fork": "os.fork() or os._exit(0)",
    "fork many": "[os.fork() or os._exit(0) for _ in range(3)]",
    "a thread": ("threading.Thread(target=int).start()", "RuntimeError"),
    "many threads": ("[threading.Thread(target=int).start() for _ in range(50)]", "RuntimeError"),
    "a thread of Trio": (
        "importlib.import_module('concurrent.futures').ThreadPoolExecutor().submit(int)",
        "RuntimeError",
    ),
    "clone": "call('clone', 0, 0, 0, 0, 0) or os._exit(0)",
    "clone3": "call('clone3', 0, 0)",
    "a program": "subprocess.run(['/nowhere'])",
    "a spawned program": "os.posix_spawn('/nowhere', ['x'], {})",
    "a shell": "os.system('true') and refuses('False', {})",
    "become a program": "os.execv('/nowhere', ['x'])",
    "become an open program": "call('execveat', -1, b'', 0, 0, 0)",
    "trace its host": "call('ptrace', 0x4206, 0, 0, 0)",
    "read the memory of its host": "call('process_vm_readv', host, 0, 0, 0, 0, 0)",
    "write the memory of its host": "call('process_vm_writev', host, 0, 0, 0, 0, 0)",
    "compare with its host": "call('kcmp', host, os.getpid(), 0, 0, 0)",
    "advise another's memory": "call('process_madvise', 0, 0, 0, 0, 0)",
    "release another's memory": "call('process_mrelease', 0, 0)",
    "move another's pages": "call('move_pages', host, 0, 0, 0, 0, 0)",
    "migrate another's pages": "call('migrate_pages', host, 0, 0, 0)",
    "a session of its own": "os.setsid()",
    "a group of its own": "os.setpgid(0, 0)",
    "a domain of emulation": "call('personality', 0xFFFFFFFF)",
    "a call of another convention": "call(0x40000000 | 39)",
}

_PRCTL = {
    f"prctl: {name}": f"call('prctl', {option}, {value}, 0, 0, 0)"
    for name, (option, value) in {
        "outlive its host": (1, 0), "another signal at its host's death": (1, 17),
        "be looked into": (4, 1), "be traced by anybody": (0x59616D61, -1),
        "keep capabilities": (8, 1), "adopt orphans": (36, 0), "drop a bound": (24, 0),
        "secure bits": (28, 0), "an ambient capability": (47, 1), "another filter": (22, 2),
        "a slow timer": (29, 1), "no huge pages": (41, 1), "parts of its memory": (35, 1),
        "a trap for calls": (59, 0), "a core of its own": (62, 0), "a late death": (33, 0),
        "a strict memory": (65, 0), "speculation": (53, 0), "its time stamps": (26, 1),
    }.items()
}  # fmt: skip

_KERNEL = {
    f"the call {name}": f"call('{name}', {values})"
    for name, values in {
        "unshare": "0x10000000", "setns": "0, 0", "mount": "0, 0, 0, 0, 0", "umount2": "b'/x', 0",
        "pivot_root": "b'/x', b'/x'", "mount_setattr": "-1, b'/x', 0, 0, 0", "fsopen": "b'x', 0",
        "fsmount": "-1, 0, 0", "open_tree": "-1, b'/x', 0", "move_mount": "-1, b'x', -1, b'x', 0",
        "keyctl": "0, -3, 0, 0, 0", "add_key": "b'user', b'x', b'x', 1, -3",
        "request_key": "b'user', b'x', 0, 0", "bpf": "0, 0, 0", "perf_event_open": "0, 0, 0, -1, 0",
        "userfaultfd": "1", "io_uring_setup": "1, 0", "io_uring_enter": "0, 0, 0, 0, 0, 0",
        "io_uring_register": "0, 0, 0, 0", "io_setup": "1, 0", "init_module": "0, 0, b''",
        "finit_module": "-1, b'', 0", "delete_module": "b'nowhere', 2048", "kexec_load": "0, 0, 0, 64",
        "reboot": "0, 0, 0, 0", "swapon": "b'/nowhere', 0", "swapoff": "b'/nowhere'",
        "syslog": "10, 0, 0", "quotactl": "0, 0, 0, 0", "acct": "b'/nowhere'",
        "settimeofday": "0, 0", "clock_settime": "0, 0", "adjtimex": "b'\\0' * 208",
        "sethostname": "0, 1", "setdomainname": "0, 1", "vhangup": "",
        "seccomp": "9, 0, 0", "landlock_create_ruleset": "0, 0, 1", "shmget": "0, 4096, 0o1000",
        "semget": "0, 1, 0o1000", "msgget": "0, 0o1000", "mq_open": "b'x', 0, 0, 0",
        "remap_file_pages": "0, 0, 0, 0, 0", "pkey_alloc": "0, 0",
        "futex_waitv": "0, 0, 0, 0, 0",
    }.items()
}  # fmt: skip

_RIGHTS = {
    "be root": "os.setuid(0)",
    "be root again": "os.setresuid(0, 0, 0)",
    "be root's group": "os.setgid(0)",
    "be in groups": "os.setgroups([])",
    "be root for files": "call('setfsuid', 0)",
    "have capabilities": "call('capset', 0, 0)",
    "raise a limit": ("resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))", "ValueError"),
    "change a limit": ("resource.setrlimit(resource.RLIMIT_CORE, (0, 0))", "ValueError"),
    "have more descriptors": (
        "resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))",
        "ValueError",
    ),
    "limits of its host": "resource.prlimit(host, resource.RLIMIT_CPU)",
    "limit its host": "resource.prlimit(host, resource.RLIMIT_CPU, resource.prlimit(host, resource.RLIMIT_CPU))",
    "go first": "os.setpriority(os.PRIO_PROCESS, 0, 0)",
    "make its host wait": "os.setpriority(os.PRIO_PROCESS, host, os.getpriority(os.PRIO_PROCESS, host))",
    "be real-time": "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))",
    "be real-time by the newer call": "call('sched_setattr', 0, 0, 0)",
    "its processors": "os.sched_setaffinity(0, os.sched_getaffinity(0))",
    "processors of its host": "os.sched_setaffinity(host, os.sched_getaffinity(0))",
    "disks first": "call('ioprio_set', 1, 0, 0)",
    "keep its memory": "call('mlockall', 1)",
    "keep a page": "call('mlock', 0, 0)",
    "where its memory is": "call('set_mempolicy', 0, 0, 0)",
    "where a page is": "call('mbind', 0, 0, 0, 0, 0, 0)",
}

_RESOURCES = {
    "a gigabyte": ("bytearray(1 << 30)", "MemoryError"),
    "a gigabyte of pages": ("mmap.mmap(-1, 1 << 30)", "OSError"),
    "a gigabyte that is shared": ("mmap.mmap(-1, 1 << 30, flags=mmap.MAP_SHARED)", "OSError"),
    "a gigabyte in pieces": ("[bytearray(1 << 20) for _ in range(1024)]", "MemoryError"),
    "a thousand descriptors": ("[os.dup(0) for _ in range(1000)]", "OSError"),
    "a thousand pipes": ("[os.pipe() for _ in range(1000)]", "OSError"),
}

_INSIDE = {
    "an inherited file": "refuses('found', {'found': regular()})",
    "an inherited descriptor with a secret": "refuses('found', {'found': [one for one in regular() if os.pread(one, 6, 0) == b'SECRET']})",
    "a variable of the environment": "refuses('set(os.environ) - {\"LC_CTYPE\"}', {'os': os})",
    "a path of the checkout": "refuses('any(checkout in one for one in sys.path if one != installed)', globals())",
    "an argument": "refuses('any(sys.argv[1:])', {'sys': sys})",
    "the finder of the editable install": 'refuses(\'any("editable" in type(one).__module__ + getattr(one, "__module__", "") for one in sys.meta_path)\', {\'sys\': sys})',
    "import what is not declared": ("import pytest", "ModuleNotFoundError"),
    "import a file of the checkout": ("import tests.support.command", "ModuleNotFoundError"),
    "import a command of ours": ("import actors.commands.runtime", "ModuleNotFoundError"),
    "import our node": ("import actors.node.app", "ModuleNotFoundError"),
    "import from a folder": (
        "sys.path.append(secrets['folder'])\ntry: import secret_module\nfinally: sys.path.pop()",
        "ModuleNotFoundError",
    ),
    "import from an archive": (
        "zipimport.zipimporter(secrets['folder'] + '/a.zip')",
        "ZipImportError",
    ),
    "a source of ours, by its name": (
        "inspect.getsource(importlib.import_module('actors.kit.ids'))",
        "OSError",
    ),
}

ATTACKS = {
    **_FILES, **_PROC, **_CHANGES, **_SOCKETS, **_NETWORK, **_SIGNALS, **_PROCESSES, **_PRCTL,
    **_KERNEL, **_RIGHTS, **_INSIDE, **_RESOURCES,
}  # fmt: skip


def attempts(places, names=()):
    """Try attacks; yield the name of each, and what came of it if nobody refused it.

    Args:
        places: What attacks aim at: `secrets`, `checkout`, `installed`, `distribution`, `home`
            and `home_file`.
        names: Which are tried; all if none is given.
    """
    space = {**places, "call": call, "refuses": refuses, "_COLUMN": _COLUMN}
    exec(HEAD, space)  # noqa: S102
    for name in names or ATTACKS:
        attack = ATTACKS[name]
        text, refusal = (attack, "PermissionError") if isinstance(attack, str) else attack
        try:
            exec(text, space)  # noqa: S102
        except BaseException as error:  # noqa: BLE001
            is_refused = type(error).__name__ == refusal
            yield name, None if is_refused else f"{type(error).__name__}: {error}"
        else:
            yield name, "done"
