# Reads the output of `read-rip -t`, and finds the two marks around a lock among all marks.
#
# A mark is {sequence}FILE:LINE or {sequence}FILE:LINE<0xADDRESS>. If the linker has folded several marks into one, it
# is {sequence}FILE:LINE|FILE:LINE. Such a mark is never taken for one around a lock, but it may be a release in any of
# these files. A mark of a lock says what it means, in a word after the line: FILE:LINE(takes). After `, now ` follows
# what a living thread does now.
#
# The meaning of all other marks comes from a pattern. A line that takes a lock has two marks, which therefore have
# addresses: the first means "waits", the second "acquired". The module learns this from the whole input: where two
# marks of one line with different addresses follow each other, the first address is one of waiting, and the second
# address is one of having acquired. After that it also recognises a single mark, whose partner was overwritten or is
# yet to come. A line whose marks mostly stand alone takes no lock: an unlock function that is inlined in several
# places has several addresses too, and its marks look like a pair when two locks are released one after the other.
#
# It does not know what is older than the history, or which of several locks a line takes. It mistakes a line for one
# that takes a lock if two unlocks always follow each other there. It uses nothing beyond Debian's perl-base.
package RipMarks;

use strict;
use warnings;

# The program can have tens of thousands of threads, and most of them have passed the same marks. So threads with the
# same marks share a history, and each distinct mark is parsed once.

# Stands for the comma and the sequence before a mark. read-rip prints no such character.
my $next = "\x01";

# Reads threads and tasks from a file handle. Returns a list of { line, name, tid, who (what read-rip calls it, as
# `worker[12]`, `reader[task 7]` or `task 7`), exited, marks (their text), history }. A
# history is { marks, count (the number of its threads), from_start (whether it begins with a thread's very first mark,
# number 0) }. A mark is { file, files (all files that it may be in), at (FILE:LINE), address (or undef), word (or
# undef) }. A line that begins with a blank continues the line before it.
sub threads {
    my ($input) = @_;
    my (@lines, %histories, %marks);
    while (my $line = <$input>) {
        $line =~ s/[\r\n]+\z//;
        if (@lines && $line =~ /\A[ \t]+\{\d+\}/) {
            $lines[-1] .= "\n$line";
        } else {
            push @lines, $line;
        }
    }
    return map { thread($_, \%histories, \%marks) } @lines;
}

# Parses the line of a thread. Returns nothing for any other line. The name of a thread may contain anything, also text
# that looks like a thread id: the last such text before the marks is the id.
sub thread {
    my ($line, $histories, $known) = @_;
    my $joined = $line;
    $joined =~ s/,?[ \t]*\n[ \t]+/, /g if index($line, "\n") >= 0;
    $joined =~ s/[ \t,]+\z// if $joined =~ /[ \t,]\z/;
    my $exited = $joined =~ /EXIT\z/ && $joined =~ s/,[ \t]+EXIT\z// ? 1 : 0;
    # What the thread does now follows its last mark.
    $joined =~ s/,[ \t]+now (?!.*,[ \t]+\{\d+\}).*\z//;
    return unless $joined =~ /\A(?:(.*)\[((?:task )?\d+)\]|(task \d+))[^\[\]{}]*:[ \t]+(?=\{\d+\})/;
    my ($name, $tid, $marks) = ($1 // '', $2 // $3, ', ' . substr $joined, $+[0]);
    my $who = $3 // "$name\[$tid]";
    my $from_start = $marks =~ /\A, \{0+\}/ ? 1 : 0;
    (my $places = $marks) =~ s/,[ \t]+\{\d+\}/$next/g;
    my $history = $histories->{"$from_start$places"} //= {
        marks => [ map { $known->{$_} //= mark($_) } split /$next/, substr($places, 1), -1 ],
        count => 0,
        from_start => $from_start,
    };
    $history->{count}++;
    return {
        line => $line, name => $name, tid => $tid, who => $who,
        exited => $exited, marks => $marks, history => $history,
    };
}

# The sequences of a thread's marks.
sub sequences {
    my ($thread) = @_;
    return $thread->{marks} =~ /,[ \t]+\{(\d+)\}/g;
}

# Parses a mark without its sequence. A mark without file and line (an address without symbols) is never one around a
# lock.
sub mark {
    my ($place) = @_;
    my $line = qr/[^|<]+?:\d+/;
    if ($place =~ /\A((?:$line\|)+(?:$line|\.\.\.))/) {
        my $at = $1;
        my @files = map { /\A(.+):\d+\z/ ? $1 : () } split /\|/, $at;
        return { file => '', files => \@files, at => $at, address => undef, word => undef };
    }
    if ($place =~ /\A(.+?):(\d+)(?:<0x([0-9a-fA-F]+)>)?(?:\(([a-z]+)\))?(?![\d:])/) {
        return { file => $1, files => [$1], at => "$1:$2", address => $3, word => $4 };
    }
    return { file => '', files => [''], at => $place, address => undef, word => undef };
}

# Learns from all threads which addresses of a line mean "waits" and which "acquired". $roles->{at}{address} is the
# number of pairs in which the address is first, minus the number of pairs in which it is second.
sub learn {
    my @threads = @_;
    my (%seen, %roles, %pairs, %alone);
    for my $history (grep { !$seen{$_}++ } map { $_->{history} } @threads) {
        my $count = $history->{count};
        my @marks = grep { !defined $_->{word} } @{ $history->{marks} };
        my @places = map { $_->{at} } @marks;
        my $from = 0;
        while ($from < @places) {
            my $at = $places[$from];
            my $to = $from;
            $to++ while $to < $#places && $places[ $to + 1 ] eq $at;
            my $length = $to - $from + 1;
            # Elsewhere in a history, a mark around a lock has its partner next to it.
            $alone{$at} += $count if $length % 2 && $from > 0 && $to < $#places;
            # The first mark of a pair may be missing at the start of a history, and the second at its end.
            my $lost = $length % 2 && $from == 0 && $to < $#places ? 1 : 0;
            for (my $i = $from + $lost ; $i + 1 <= $to ; $i += 2) {
                my ($first, $second) = map { $_->{address} } @marks[ $i, $i + 1 ];
                next unless defined $first && defined $second && $first ne $second;
                $pairs{$at} += $count;
                $roles{$at}{$first} += $count;
                $roles{$at}{$second} -= $count;
            }
            $from = $to + 1;
        }
    }
    delete @roles{ grep { ($alone{$_} // 0) > $pairs{$_} } keys %roles };
    return \%roles;
}

# What the marks of a history mean, one word for each: 'waits', 'acquired', 'unknown' (one of these two), 'released' (of
# a recorded lock), 'nothing' or 'other'. A history is looked at once.
sub meanings {
    my ($roles, $history) = @_;
    my $known = $history->{meanings} //= [ find_meanings($roles, $history) ];
    return @$known;
}

sub find_meanings {
    my ($roles, $history) = @_;
    my $marks = $history->{marks};
    my @recorded = recorded($marks);
    my (@meanings, $before);
    for my $i (0 .. $#$marks) {
        my $mark = $marks->[$i];
        if (defined $recorded[$i]) {
            push @meanings, $recorded[$i];
            $before = undef;
            next;
        }
        my $line = defined $mark->{address} ? $roles->{ $mark->{at} } : undef;
        my $balance = $line ? $line->{ $mark->{address} } // 0 : 0;
        my $meaning = !$line ? 'other' : $balance > 0 ? 'waits' : $balance < 0 ? 'acquired' : undef;
        # Another inlined copy of the line, which no thread in the input has passed. The mark means "waits" unless the
        # mark before it is the first of the pair. A thread's very first mark has none before it.
        $meaning //=
              !$before                     ? $i == 0 && $history->{from_start} ? 'waits' : 'unknown'
            : $before->{at} ne $mark->{at} ? 'waits'
            : $meanings[-1] eq 'waits'     ? 'acquired'
            : $meanings[-1] eq 'acquired'  ? 'waits'
            :                                'unknown';
        push @meanings, $meaning;
        $before = $mark;
    }
    return @meanings;
}

# What the marks of locks mean; undef for other marks. After "takes", the mark of a recorded lock, the thread has the
# lock unless it waits or fails next. A thread that goes on after "waits" has the lock unless it failed. If the lock is
# marked by hand, "acquired" follows instead. A thread that is "idle" waits on a condition variable and has released the
# lock meanwhile.
sub recorded {
    my ($marks) = @_;
    my @meanings = (undef) x @$marks;
    # The word of the next mark of a lock.
    my $next_word = '';
    for my $i (reverse 0 .. $#$marks) {
        my $word = $marks->[$i]{word};
        next unless defined $word;
        $meanings[$i] =
              $word eq 'released' || $word eq 'idle'  ? 'released'
            : $word eq 'acquired' || $word eq 'woken' ? 'acquired'
            : $word eq 'takes' ? $next_word eq 'waits' || $next_word eq 'failed' ? 'nothing' : 'acquired'
            : $word ne 'waits' ? 'nothing'
            : $i == $#$marks   ? 'waits'
            : $next_word eq 'failed' || $next_word eq 'acquired' ? 'nothing'
            :                                                      'acquired';
        $next_word = $word;
    }
    return @meanings;
}

# Whether $wanted is the whole name of a file as shown, or the last parts of its path.
sub is_file {
    my ($shown, $wanted) = @_;
    return 1 if $shown eq $wanted;
    my $tail = "/$wanted";
    return length $shown > length $tail && substr($shown, -length $tail) eq $tail;
}

1;
