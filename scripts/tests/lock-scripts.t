#!/usr/bin/env perl
# Tests lock-holders and lock-waiters on output of read-rip, as it is and as it may become.
#
#   scripts/tests/lock-scripts.t
#
# Ends with a line like that of cargo, `test result: ok. N passed; M failed`, which scripts/test adds up. Needs only
# perl-base: a minimal Debian has no Test::More.
use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);

my $scripts = dirname(dirname(abs_path($0)));
my ($passed, $failed) = (0, 0);

# Runs a script on an input. Returns its output and its exit status.
sub run {
    my ($input, $script, @arguments) = @_;
    my $file = "/tmp/lock-scripts.$$";
    open my $out, '>', $file or die "could not write $file: $!\n";
    print {$out} $input;
    close $out or die "could not write $file: $!\n";
    my $pid = open my $pipe, '-|';
    die "could not fork: $!\n" unless defined $pid;
    if (!$pid) {
        open STDIN, '<', $file or die "could not read $file: $!\n";
        open STDERR, '>', '/dev/null' or die "could not silence: $!\n";
        exec $^X, "$scripts/$script", @arguments or die "could not start $script: $!\n";
    }
    my $printed = do { local $/; <$pipe> } // '';
    close $pipe;
    my $status = $? >> 8;
    unlink $file;
    return ($printed, $status);
}

sub is {
    my ($name, $got, $expected) = @_;
    if ($got eq $expected) {
        $passed++;
        print "test $name ... ok\n";
    } else {
        $failed++;
        print "test $name ... FAILED\n  expected: $expected\n  got:      $got\n";
    }
}

# The sample of the article "Ripping Rings", unchanged.
my $article = <<'END';
[35283]: {82}source_a.c:124<0x442bae>, {83}source_a.c:129, {84}source_b.c:2670,
    {85}source_b.c:217, {86}source_b.c:662, {87}source_a.c:124<0x442af7>,
    {88}source_a.c:124<0x442bae>, {89}source_a.c:129, {90}source_b.c:767,
    {91}source_c.c:132, {92}source_c.c:134<0x477f12>, {93}source_c.c:144<0x477fa3>,
    {94}source_b.c:110, {95}source_b.c:3873, {96}source_b.c:3405,
    {97}source_d.c:339<0x45f617>, {98}source_d.c:339<0x45f6a3>, {99}source_d.c:341,
    {100}source_c.c:238<0x479f52>, {101}source_c.c:238<0x479fe0>,
    {102}source_c.c:240, {103}source_b.c:3405, {104}source_b.c:2773,
    {105}source_a.c:124<0x442af7>, {106}source_a.c:124<0x442bae>, {107}source_a.c:129,
    {108}source_a.c:124<0x442af7>, {109}source_a.c:124<0x442bae>, {110}source_a.c:129,
    {111}source_e.c:573<0x43be8f>, {112}source_e.c:573<0x43bf1b>,
END
(my $article_in_one_line = $article) =~ s/\n[ ]+/ /g;

for my $form ([ wrapped => $article ], [ joined => $article_in_one_line ]) {
    my ($word, $input) = @$form;
    is("the_thread_of_the_article_holds_the_lock_of_source_e_$word",
        (run($input, 'lock-holders', 'source_e.c'))[0], $input);
    for my $file (qw(source_a.c source_b.c source_c.c source_d.c)) {
        is("the_thread_of_the_article_holds_no_lock_of_${file}_$word", (run($input, 'lock-holders', $file))[0], '');
    }
    is("without_a_file_the_script_looks_at_all_files_$word",
        (run($input, 'lock-holders', '-s'))[0], "[35283]: holds source_e.c:573 since {112}\n");
    is("the_thread_of_the_article_waits_for_no_lock_$word", (run($input, 'lock-waiters'))[0], '');
}

# The verdict of the script in the article on a line, for the cases in which that script is right.
sub articles_script {
    my ($l, $sf) = @_;
    return 0 unless $l =~ /\{\d+\}\Q$sf\E:(\d+)<0x[0-9a-f]+>, \{\d+\}\Q$sf\E:\1<0x[0-9a-f]+>/;
    return 0 if $l =~ /\{\d+\}\Q$sf\E:(\d+)<0x[0-9a-f]+>, \{\d+\}\Q$sf\E:\1<0x[0-9a-f]+>, .*\{\d+\}\Q$sf\E/;
    return 1;
}
for my $file (qw(source_a.c source_b.c source_c.c source_d.c source_e.c)) {
    my ($printed) = run($article_in_one_line, 'lock-holders', $file);
    is("agrees_with_the_script_of_the_article_on_$file",
        $printed ne '' ? 1 : 0, articles_script($article_in_one_line, $file));
}

my ($wait, $has, $release) = ('locks.c:10<0xa1>', 'locks.c:10<0xa2>', 'locks.c:20');
my ($wait2, $has2, $release2) = ('locks.c:30<0xb1>', 'locks.c:30<0xb2>', 'locks.c:40');

# The line of a thread: its name and id, then its marks, numbered from $from.
sub line {
    my ($who, $from, @marks) = @_;
    return "$who: " . join(', ', map { '{' . $from++ . "}$_" } @marks) . "\n";
}
# From this thread the scripts learn which marks belong to a lock.
my $teacher = line('teacher[1]', 0, $wait, $has, $release, $wait2, $has2, $release2);

sub holders { return (run($teacher . join('', @_), 'lock-holders', '-s', 'locks.c'))[0] }
sub waiters { return (run($teacher . join('', @_), 'lock-waiters', 'locks.c'))[0] }

is('a_thread_that_released_is_not_listed', holders(), '');
is('a_mark_in_another_file_releases_nothing',
    holders(line('a[2]', 5, $wait, $has, 'other.c:7')), "a[2]: holds locks.c:10 since {6}\n");
is('tasks_hold_locks_as_threads_do',
    holders(line('reader[task 2]', 5, $wait, $has), line('task 3', 5, $wait, $has)),
    "reader[task 2]: holds locks.c:10 since {6}\ntask 3: holds locks.c:10 since {6}\n");
is('the_outer_lock_stays_held_when_the_inner_lock_is_released',
    holders(line('a[2]', 5, $wait, $has, $wait2, $has2, $release2)), "a[2]: holds locks.c:10 since {6}\n");
is('a_thread_can_hold_two_locks',
    holders(line('a[2]', 5, $wait, $has, $wait2, $has2)), "a[2]: holds locks.c:10 since {6}, locks.c:30 since {8}\n");
is('a_thread_that_released_one_lock_after_another_holds_none',
    holders(line('a[2]', 5, $wait, $has, $release, $wait2, $has2, $release2, $wait, $has, $release)), '');
is('a_thread_that_waits_for_a_second_lock_still_holds_the_first',
    holders(line('a[2]', 5, $wait, $has, $wait2)), "a[2]: holds locks.c:10 since {6}\n");
is('an_acquisition_whose_first_mark_was_overwritten_counts',
    holders(line('a[2]', 77, $has, 'other.c:7')), "a[2]: holds locks.c:10 since {77}\n");
is('a_release_whose_acquisition_was_overwritten_does_not_release_the_next_lock',
    holders(line('a[2]', 77, $release, $wait, $has)), "a[2]: holds locks.c:10 since {79}\n");
is('a_history_that_begins_in_the_middle_of_a_loop_is_paired_correctly',
    holders(line('a[2]', 77, $has, $wait, $has, $wait, $has, 'other.c:1')) =~ /\Aa\[2\]/ ? 1 : 0, 1);
is('two_marks_on_a_line_with_one_address_take_no_lock',
    (run(line('a[2]', 0, 'x.c:1', 'x.c:1', 'x.c:1<0x1>', 'x.c:1<0x1>'), 'lock-holders', '-s'))[0], '');
is('an_unlock_function_that_is_inlined_in_several_places_takes_no_lock',
    (run(line('a[2]', 0, 'l.c:1<0xa1>', 'l.c:1<0xa2>', 'l.c:1<0xb1>', 'l.c:1<0xb2>', 'l.c:9<0xc1>', 'l.c:9<0xc2>',
        'm.c:1', 'l.c:1<0xa1>', 'l.c:1<0xa2>', 'l.c:9<0xc2>',
        'm.c:1', 'l.c:1<0xa1>', 'l.c:1<0xa2>', 'l.c:9<0xc2>', 'm.c:1'),
        'lock-holders', '-s'))[0], '');
is('a_sequence_number_may_be_large',
    holders(line('a[2]', 18446744073709551000, $wait, $has)) =~ /\Aa\[2\]: holds locks\.c:10 since/ ? 1 : 0, 1);

for my $name ('', 'two words', 'a[1]', 'x[12]: {3}y.c:1', 'a, {1}b.c:2', "tab\there", 'locks.c:10<0xa1>', '{7}') {
    is("a_thread_may_be_called_<$name>", holders(line("$name\[2]", 5, $wait, $has)),
        "$name\[2]: holds locks.c:10 since {6}\n");
}
is('the_state_of_a_thread_may_follow_its_id',
    (run($teacher . "a[2] exited: {5}$wait, {6}$has\n", 'lock-holders', 'locks.c'))[0],
    "a[2] exited: {5}$wait, {6}$has\n");

my $deep = line('a[2]', 5, 'src/sync/mod.rs:20<0x1>', 'src/sync/mod.rs:20<0x2>');
is('a_file_may_be_given_by_the_end_of_its_path', (run($deep, 'lock-holders', 'mod.rs'))[0], $deep);
is('a_file_may_be_given_by_more_of_its_path', (run($deep, 'lock-holders', 'sync/mod.rs'))[0], $deep);
is('a_part_of_a_file_name_does_not_match', (run($deep, 'lock-holders', 'od.rs'))[0], '');

is('waiting_threads_are_counted_by_line',
    waiters(line('a[2]', 5, $wait), line('b[3]', 5, $release, $wait), line('c[4]', 9, $wait2)),
    "2 locks.c:10\n1 locks.c:30\n");
is('a_thread_that_acquired_a_lock_does_not_wait', waiters(line('a[2]', 5, $wait, $has)), '');
is('a_thread_that_went_on_does_not_wait', waiters(line('a[2]', 5, $wait, 'other.c:1')), '');
is('a_thread_waits_at_another_inlined_copy_of_the_line',
    waiters(line('a[2]', 5, 'other.c:1', 'locks.c:10<0xc1>')), "1 locks.c:10\n");
is('a_thread_waits_at_a_copy_that_no_thread_passed_after_it_took_a_lock_of_the_same_line',
    waiters(line('a[2]', 5, $wait, $has, 'locks.c:10<0xc1>')), "1 locks.c:10\n");
is('a_thread_waits_at_a_copy_that_no_thread_passed_with_its_first_mark',
    waiters(line('a[2]', 0, 'locks.c:10<0xc1>')), "1 locks.c:10\n");
is('a_thread_that_exited_does_not_wait', waiters("a[2]: {5}$wait, EXIT\n"), '');
is('a_thread_that_exited_may_hold_a_lock',
    holders("a[2]: {5}$wait, {6}$has, EXIT\n"), "a[2]: holds locks.c:10 since {6}\n");
my @deadlocked = (
    line('a[2]', 0, 'm.c:1', $wait, $has, 'locks.c:10<0xc1>'),
    line('b[3]', 0, 'm.c:1', $wait, $has, 'locks.c:10<0xd1>'));
is('two_threads_in_a_deadlock_hold_and_wait',
    holders(@deadlocked) . waiters(@deadlocked),
    "a[2]: holds locks.c:10 since {2}\nb[3]: holds locks.c:10 since {2}\n2 locks.c:10\n");
is('lock_waiters_v_names_the_threads',
    (run($teacher . line('a b[2]', 5, $wait), 'lock-waiters', '-v'))[0], "1 locks.c:10\n    a b[2]\n");
is('marks_without_symbols_do_no_harm',
    waiters(line('a[2]', 5, '0x1234', '[unknown]', $wait)), "1 locks.c:10\n");
is('folded_marks_may_be_releases_in_each_of_their_files',
    holders(line('a[2]', 5, $wait, $has, 'other.c:3|locks.c:20')), '');
is('folded_marks_take_no_lock',
    waiters(line('a[2]', 5, 'other.c:1', 'locks.c:10|other.c:3<0xa1>')), '');

my $waiting = line('w[9]', 5, 'a.rs:1<0x1>(takes)', 'b.rs:9(released)', 'a.rs:1<0x1>(takes)', 'a.rs:1<0x2>(waits)');
is('a_recorded_lock_is_held_if_it_is_taken_and_not_released',
    holders_of(line('w[9]', 5, 'a.rs:1<0x1>(takes)', 'm.rs:2')), "w[9]: holds a.rs:1 since {5}\n");
is('a_thread_that_waits_for_a_recorded_lock_does_not_hold_it', holders_of($waiting), '');
is('a_thread_that_waits_for_a_recorded_lock_is_counted', (run($waiting, 'lock-waiters'))[0], "1 a.rs:1\n");
is('a_thread_that_goes_on_after_the_wait_for_a_recorded_lock_holds_it',
    holders_of(line('w[9]', 5, 'a.rs:1<0x1>(takes)', 'a.rs:1<0x2>(waits)', 'm.rs:2')),
    "w[9]: holds a.rs:1 since {6}\n");
is('a_thread_whose_wait_for_a_recorded_lock_failed_does_not_hold_it',
    holders_of(line('w[9]', 5, 'a.rs:1<0x1>(takes)', 'a.rs:1<0x2>(failed)', 'm.rs:2')), '');
# Varnish's pattern: all marks of a lock are in one macro, so they have the caller's line.
my $by_hand = 'c.c:7<0x1>(waits)';
my $acquired = 'c.c:7<0x2>(acquired)';
is('a_thread_that_waits_for_a_lock_marked_by_hand_does_not_hold_it', holders_of(line('w[9]', 5, $by_hand)), '');
is('a_lock_marked_by_hand_is_held_once_after_a_wait',
    holders_of(line('w[9]', 5, $by_hand, $acquired, 'm.c:2')), "w[9]: holds c.c:7 since {6}\n");
is('a_lock_marked_by_hand_is_not_held_after_its_release',
    holders_of(line('w[9]', 5, $by_hand, $acquired, 'c.c:9(released)', 'm.c:2')), '');
is('a_thread_that_waits_on_a_condition_has_released_the_lock',
    holders_of(line('w[9]', 5, $acquired, 'c.c:8(idle)')), '');
is('a_thread_that_came_back_from_a_condition_holds_the_lock',
    holders_of(line('w[9]', 5, $acquired, 'c.c:8(idle)', 'c.c:8(woken)')), "w[9]: holds c.c:8 since {7}\n");
is('the_scripts_learn_no_pattern_from_marks_of_recorded_locks',
    holders_of(line('w[9]', 5, 'a.rs:1<0x1>(takes)', 'a.rs:1<0x2>(waits)', 'a.rs:1<0x3>(released)', 'a.rs:1<0x1>')),
    '');
# The two marks of line 7 would be those around a lock if they had no words.
is('what_a_thread_does_with_a_condition_variable_takes_no_lock',
    holders_of(line('w[9]', 5, map { ("a.rs:7<0x1>($_)", "a.rs:7<0x2>($_)") } qw(signals unheard abandons))), '');
# What a living thread does now follows its last mark.
is('what_a_thread_does_now_is_no_part_of_its_last_mark',
    holders("a[2]: {5}$wait, {6}$has, now in recvfrom on descriptor 3 (TCP to 10.0.0.7:5432)\n")
        . waiters("a[2]: {5}$wait, now waiting for the mutex M (0x10), owned by b[3]\n")
        . (run("w[9]: {5}prog+0x12, now in recvfrom on descriptor 3 (TCP to 10.0.0.7:5432)\n", 'lock-waiters'))[0],
    "a[2]: holds locks.c:10 since {6}\n1 locks.c:10\n");

sub holders_of { return (run($_[0], 'lock-holders', '-s'))[0] }

for my $script (qw(lock-holders lock-waiters)) {
    is("${script}_fails_if_the_input_contains_no_thread",
        (run("lock : 5 threads, 1 location: a.c:1\n", $script))[1], 2);
    is("${script}_succeeds_if_it_lists_no_thread", (run($teacher, $script))[1], 0);
    is("${script}_refuses_unknown_options", (run($teacher, $script, '--frobnicate'))[1], 2);
    is("${script}_survives_nonsense", (run("\0\xff[1]: {1}\n[]: {}\n\n{1}a\n  {2}b\nx[1]: {1}a.c:1\n", $script))[1], 0);
}

# Threads whose marks are alike share what is found out about them, but for their sequences.
my $alike = join '', map { "w[$_]: {$_}a.c:1(takes), {1$_}a.c:2(takes), {2$_}b.c:3(released)\n" } 5, 7;
is('threads_with_the_same_marks_hold_since_their_own_sequences', (run($alike, 'lock-holders', '-s'))[0],
    "w[5]: holds a.c:1 since {5}\nw[7]: holds a.c:1 since {7}\n");
# The address <0xff> is in no pair. At the start of a thread, it means that the thread waits.
my $first = "x[1]: {0}a.c:1<0xff>\ny[2]: {9}a.c:1<0xff>\n" . "z[3]: {4}a.c:1<0xa>, {5}a.c:1<0xb>, {6}a.c:2\n";
is('a_thread_that_begins_with_a_mark_is_not_like_one_that_lost_those_before', (run($first, 'lock-waiters', '-v'))[0],
    "1 a.c:1\n    x[1]\n");

printf "test result: %s. %d passed; %d failed\n", $failed ? 'FAILED' : 'ok', $passed, $failed;
exit($failed ? 1 : 0);
