//! Reads without a system call.

use perfmon_linux::ReadPath;

use crate::session::Session;

impl Session {
    /// Whether the next [`load`](Self::load) of [`Scope::CurrentThread`](crate::Scope::CurrentThread) has its counts kept
    /// in mapped memory, by programs in the kernel: a [`read`](Self::read) then takes no system call, and the session
    /// opens no perf event. It needs root, or `CAP_BPF` and `CAP_PERFMON`.
    ///
    /// That is done for sessions whose events are all among `task-clock`, `context-switches`, `cpu-migrations` and, on
    /// x86_64, `page-faults` (also `:u` and `:k`), whose values are then the kernel's own; only the time of `task-clock`
    /// ends a little elsewhere within each context switch, and a little later at the end of the thread. All others are read as usual:
    /// [`read_path`](Self::read_path) says why.
    ///
    /// The programs are loaded by the first such session of the process, which takes some milliseconds, and go with the
    /// last. While they are there, each context switch of the machine takes some 0.1 µs longer.
    ///
    /// ```
    /// # use perfmon::{ReadPath, Scope, Session};
    /// let mut session = Session::new("page-faults,context-switches")?;
    /// session.set_fast_reads(true);
    /// session.load(&Scope::CurrentThread)?;
    /// session.start()?;
    /// let mut values = [0; 2];
    /// if session.read_values(&mut values) {
    ///     assert_eq!(session.read_path(), ReadPath::Mapped);
    /// }
    /// # Ok::<(), perfmon::Error>(())
    /// ```
    pub fn set_fast_reads(&mut self, wanted: bool) {
        self.backend.set_fast_reads(wanted);
    }

    /// How what is loaded is read. A page that is lost makes it change: what was not counted meanwhile then shows in the
    /// counts, which are estimates.
    pub fn read_path(&self) -> ReadPath {
        match self.members.as_slice() {
            [] => ReadPath::Group { why: "nothing is loaded".into() },
            [member, ..] => member.loaded.read_path(),
        }
    }

    /// Writes what each event has counted since it was loaded to `values`, which are as many, in their order, without a
    /// system call. Without `task-clock` it does not look at the clock either: it is the fastest way to read. Allocates
    /// nothing.
    ///
    /// False, and nothing is written, if that is not possible, as [`read_path`](Self::read_path) says: take
    /// [`read`](Self::read). What [`reading`](Self::reading) and the like say stays as it is.
    #[inline]
    pub fn read_values(&self, values: &mut [u64]) -> bool {
        match self.members.as_slice() {
            [member] if values.len() == self.events().len() => member.loaded.read_values(values),
            _ => false,
        }
    }
}
