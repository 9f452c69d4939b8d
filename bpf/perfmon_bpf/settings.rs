//! Values that user space sets before a program is loaded, and the licence.

/// Declares a setting: a read-only global that the loader may set before the program is loaded.
///
/// The verifier knows its value and drops the branches that can't be taken, so one object serves several
/// machines and kernels. [`get`] reads it.
///
/// ```text
/// setting!(PERIOD: u64 = 1000);
/// ```
#[macro_export]
macro_rules! setting {
    ($(#[$attribute:meta])* $name:ident: $type:ty = $value:expr) => {
        $(#[$attribute])*
        #[unsafe(no_mangle)]
        pub static $name: $type = $value;
    };
}

/// Reads a setting.
#[inline(always)]
pub fn get<T: Copy>(setting: &'static T) -> T {
    // Volatile, or the compiler would take the initial value. A reference is valid for reads.
    unsafe { core::ptr::read_volatile(setting) }
}

/// Declares the licence of an object's programs: "Dual MIT/GPL", or the text that is given.
///
/// The kernel lends most helpers of tracing only to licences that its own is compatible with: "GPL",
/// "GPL v2", "GPL and additional rights", "Dual BSD/GPL", "Dual MIT/GPL", "Dual MPL/GPL".
#[macro_export]
macro_rules! license {
    () => {
        $crate::license!("Dual MIT/GPL");
    };
    ($text:literal) => {
        #[unsafe(link_section = "license")]
        #[unsafe(no_mangle)]
        pub static LICENSE: [u8; concat!($text, "\0").len()] =
            match concat!($text, "\0").as_bytes().as_array() {
                Some(text) => *text,
                None => panic!("a text is as long as it is"),
            };
    };
}
