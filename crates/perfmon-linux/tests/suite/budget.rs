use perfmon_linux::budget;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::helper::alone;

fn limit(current: u64, maximum: u64) {
    let limit = Rlimit { current: Some(current), maximum: Some(maximum) };
    setrlimit(Resource::Nofile, limit).unwrap();
}

fn soft() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap()
}

/// Check that the limit is raised only as far as needed, up to the hard one and no further.
#[test]
fn the_limit_is_raised_as_far_as_needed() {
    alone("budget::the_limit_is_raised_as_far_as_needed", || {
        limit(100, 400);
        budget::reserve(1).unwrap();
        assert_eq!((soft(), budget::limit_before()), (100, None));
        let open = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
        budget::reserve(200).unwrap();
        assert_eq!((soft(), budget::limit_before()), (264 + open, Some((100, 400))));
        let most = 400 - 64 - open;
        let refusal = budget::reserve(most + 1).unwrap_err();
        let expected = format!(
            "{} events have to be open at once, but this process may have no more than 400 descriptors",
            most + 1
        );
        assert_eq!(refusal.why(), expected);
        assert_eq!(soft(), 264 + open);
        budget::reserve(most).unwrap();
        assert_eq!(soft(), 400);
        // The first limit, not one of those in between.
        assert_eq!(budget::limit_before(), Some((100, 400)));
    });
}

/// Check that no number of events overflows.
#[test]
fn any_number_is_answered() {
    assert!(budget::reserve(u64::MAX).is_err());
    assert!(budget::reserve(0).is_ok());
}
