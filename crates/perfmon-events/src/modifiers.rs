//! The letters after an event.

use perfmon_core::{Privilege, Refusal};
use perfmon_sys::LibpfmEvent;

/// The offered letters, as messages name them.
pub(crate) const EXPECTED: &str =
    "a modifier (one of u k h I G H p D e, each once, p up to three times)";

/// Letters that perf knows and that are not offered, with their meanings.
const NOT_OFFERED: [(char, &str); 4] = [
    ('S', "read the group's values with each sample"),
    ('W', "weak group: broken up when it does not fit"),
    ('P', "as precise as the PMU can be"),
    ('b', "share counters through eBPF"),
];

/// What the letters after an event ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Modifiers {
    user: bool,
    kernel: bool,
    hypervisor: bool,
    not_idle: bool,
    guest: bool,
    host: bool,
    pub(crate) precise_ip: u8,
    pub(crate) pinned: bool,
    pub(crate) exclusive: bool,
    not_offered: Option<(char, &'static str)>,
}

impl Modifiers {
    /// Reads `letters`; an error is the byte offset of the first letter that can't be read.
    pub(crate) fn parse(letters: &str) -> Result<Self, usize> {
        let mut modifiers = Self::default();
        for (offset, letter) in letters.char_indices() {
            if !modifiers.add(letter) {
                return Err(offset);
            }
        }
        if letters.is_empty() { Err(0) } else { Ok(modifiers) }
    }

    /// What a modifier of libpfm4's with a value asks for, such as `precise=2` or `u=1`; `None` if it is
    /// none of them, or says what is not wanted.
    pub(crate) fn from_word(word: &str, value: u64) -> Option<Self> {
        let mut modifiers = Self::default();
        let flag = match (word, value) {
            ("precise", 0..=3) => {
                modifiers.precise_ip = u8::try_from(value).ok()?;
                return Some(modifiers);
            }
            (_, value) if value != 1 => return None,
            ("u", _) => &mut modifiers.user,
            ("k", _) => &mut modifiers.kernel,
            ("h", _) => &mut modifiers.hypervisor,
            ("mg", _) => &mut modifiers.guest,
            ("mh", _) => &mut modifiers.host,
            ("pinned", _) => &mut modifiers.pinned,
            ("excl", _) => &mut modifiers.exclusive,
            _ => return None,
        };
        *flag = true;
        Some(modifiers)
    }

    /// The modifiers that give these `exclude_*` bits.
    pub(crate) fn from_privilege(privilege: &Privilege) -> Self {
        let Privilege { exclude_user, exclude_kernel, exclude_hv, .. } = *privilege;
        let names_level = exclude_user || exclude_kernel || exclude_hv;
        let names_side = privilege.exclude_host || privilege.exclude_guest;
        Self {
            user: names_level && !exclude_user,
            kernel: names_level && !exclude_kernel,
            hypervisor: names_level && !exclude_hv,
            not_idle: privilege.exclude_idle,
            guest: names_side && !privilege.exclude_guest,
            host: names_side && !privilege.exclude_host,
            ..Self::default()
        }
    }

    /// The modifiers of an event that libpfm4 read.
    pub(crate) fn of_libpfm(event: &LibpfmEvent) -> Self {
        let privilege = Privilege {
            exclude_user: event.exclude_user,
            exclude_kernel: event.exclude_kernel,
            exclude_hv: event.exclude_hv,
            exclude_idle: false,
            exclude_host: event.exclude_host,
            exclude_guest: event.exclude_guest,
        };
        Self {
            precise_ip: event.precise_ip,
            pinned: event.pinned,
            exclusive: event.exclusive,
            ..Self::from_privilege(&privilege)
        }
    }

    /// Whether `letter` is known and may (still) be given.
    fn add(&mut self, letter: char) -> bool {
        let flag = match letter {
            'u' => &mut self.user,
            'k' => &mut self.kernel,
            'h' => &mut self.hypervisor,
            'I' => &mut self.not_idle,
            'G' => &mut self.guest,
            'H' => &mut self.host,
            'D' => &mut self.pinned,
            'e' => &mut self.exclusive,
            'p' => {
                self.precise_ip += 1;
                return self.precise_ip <= 3;
            }
            _ => {
                let known = NOT_OFFERED.into_iter().find(|&(known, _)| known == letter);
                self.not_offered = self.not_offered.or(known);
                return known.is_some();
            }
        };
        !std::mem::replace(flag, true)
    }

    /// What a group's modifiers ask of its members after the first: the kernel lets only the first
    /// event of a group be pinned or exclusive, for all of them.
    pub(crate) fn of_followers(self) -> Self {
        Self { pinned: false, exclusive: false, ..self }
    }

    /// What either asks for.
    pub(crate) fn union(self, other: Self) -> Self {
        Self {
            user: self.user | other.user,
            kernel: self.kernel | other.kernel,
            hypervisor: self.hypervisor | other.hypervisor,
            not_idle: self.not_idle | other.not_idle,
            guest: self.guest | other.guest,
            host: self.host | other.host,
            precise_ip: self.precise_ip.max(other.precise_ip),
            pinned: self.pinned | other.pinned,
            exclusive: self.exclusive | other.exclusive,
            not_offered: self.not_offered.or(other.not_offered),
        }
    }

    /// What a member and its group ask for together: a group's `p` adds to the member's, as in perf. `None` if
    /// that is too many.
    pub(crate) fn in_group(self, group: Self) -> Option<Self> {
        let precise_ip = self.precise_ip + group.precise_ip;
        (precise_ip <= 3).then(|| Self { precise_ip, ..self.union(group) })
    }

    /// The letters, in the order of the documentation.
    pub(crate) fn letters(self) -> String {
        let flags = [
            ('u', self.user),
            ('k', self.kernel),
            ('h', self.hypervisor),
            ('I', self.not_idle),
            ('G', self.guest),
            ('H', self.host),
            ('D', self.pinned),
            ('e', self.exclusive),
        ];
        let given = flags.into_iter().filter_map(|(letter, given)| given.then_some(letter));
        let precise = std::iter::repeat_n('p', usize::from(self.precise_ip));
        given.chain(precise).chain(self.not_offered.map(|(letter, _)| letter)).collect()
    }

    /// The `exclude_*` bits.
    pub(crate) fn privilege(self) -> Privilege {
        let names_level = self.user | self.kernel | self.hypervisor;
        let names_side = self.guest | self.host;
        Privilege {
            exclude_user: names_level & !self.user,
            exclude_kernel: names_level & !self.kernel,
            exclude_hv: names_level & !self.hypervisor,
            exclude_idle: self.not_idle,
            exclude_host: names_side & !self.host,
            exclude_guest: names_side & !self.guest,
        }
    }

    /// Refuses what is known, but not offered.
    pub(crate) fn require_offered(self) -> Result<(), Refusal> {
        match self.not_offered {
            None => Ok(()),
            Some((letter, meaning)) => {
                let why = format!("modifier '{letter}' ({meaning}) is not offered for counting");
                Err(Refusal::new(why).hint("leave it out"))
            }
        }
    }
}
