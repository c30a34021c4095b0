# Reads the output of `read-rip -t`, and finds the two marks around a lock among all marks.
#
# A mark is {sequence}FILE:LINE or {sequence}FILE:LINE<0xADDRESS>. If the linker has folded several marks into one, it
# is {sequence}FILE:LINE|FILE:LINE. Such a mark is never taken for one around a lock, but it may be a release in any of
# these files. A mark of a lock says what it means, in a word after the line: FILE:LINE(takes).
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

# Reads threads from a file handle. Returns a list of { line, name, tid, exited, marks }. A mark is { sequence, file,
# files (all files that it may be in), at (FILE:LINE), address (or undef), word (or undef) }. A line that begins with a
# blank continues the line before it.
sub threads {
    my ($input) = @_;
    my @lines;
    while (my $line = <$input>) {
        $line =~ s/[\r\n]+\z//;
        if (@lines && $line =~ /\A[ \t]+\{\d+\}/) {
            $lines[-1] .= "\n$line";
        } else {
            push @lines, $line;
        }
    }
    return map { thread($_) } @lines;
}

# Parses the line of a thread. Returns nothing for any other line. The name of a thread may contain anything, also text
# that looks like a thread id: the last such text before the marks is the id.
sub thread {
    my ($line) = @_;
    (my $joined = $line) =~ s/,?[ \t]*\n[ \t]+/, /g;
    $joined =~ s/[ \t,]+\z//;
    my $exited = $joined =~ s/,[ \t]+EXIT\z// ? 1 : 0;
    return unless $joined =~ /\A(.*)\[(\d+)\]([^\[\]{}]*):[ \t]+(\{\d+\}.*)\z/;
    my ($name, $tid, $marks) = ($1, $2, $4);
    my @marks = grep { defined } map { mark($_) } split /,[ \t]+(?=\{\d+\})/, $marks;
    return { line => $line, name => $name, tid => $tid, exited => $exited, marks => \@marks };
}

# Parses a mark. A mark without file and line (an address without symbols) is never one around a lock.
sub mark {
    my ($text) = @_;
    return unless $text =~ /\A\{(\d+)\}(.*)\z/;
    my ($sequence, $place) = ($1, $2);
    my $line = qr/[^|<]+?:\d+/;
    if ($place =~ /\A((?:$line\|)+(?:$line|\.\.\.))/) {
        my $at = $1;
        my @files = map { /\A(.+):\d+\z/ ? $1 : () } split /\|/, $at;
        return { sequence => $sequence, file => '', files => \@files, at => $at, address => undef, word => undef };
    }
    if ($place =~ /\A(.+?):(\d+)(?:<0x([0-9a-fA-F]+)>)?(?:\(([a-z]+)\))?(?![\d:])/) {
        return { sequence => $sequence, file => $1, files => [$1], at => "$1:$2", address => $3, word => $4 };
    }
    return { sequence => $sequence, file => '', files => [''], at => $place, address => undef, word => undef };
}

# Learns from all threads which addresses of a line mean "waits" and which "acquired". $roles->{at}{address} is the
# number of pairs in which the address is first, minus the number of pairs in which it is second.
sub learn {
    my @threads = @_;
    my (%roles, %pairs, %alone);
    for my $thread (@threads) {
        my $marks = [ grep { !defined $_->{word} } @{ $thread->{marks} } ];
        my $from = 0;
        while ($from < @$marks) {
            my $to = $from;
            $to++ while $to + 1 < @$marks && $marks->[ $to + 1 ]{at} eq $marks->[$from]{at};
            my $length = $to - $from + 1;
            my $at = $marks->[$from]{at};
            # The first mark of a pair may be missing at the start of a history, and the second at its end.
            my $lost = $length % 2 && $from == 0 && $to < $#$marks ? 1 : 0;
            for (my $i = $from + $lost ; $i + 1 <= $to ; $i += 2) {
                my ($first, $second) = map { $_->{address} } @$marks[ $i, $i + 1 ];
                next unless defined $first && defined $second && $first ne $second;
                $pairs{$at}++;
                $roles{$at}{$first}++;
                $roles{$at}{$second}--;
            }
            # Elsewhere in a history, a mark around a lock has its partner next to it.
            $alone{$at}++ if $length % 2 && $from > 0 && $to < $#$marks;
            $from = $to + 1;
        }
    }
    delete @roles{ grep { ($alone{$_} // 0) > $pairs{$_} } keys %roles };
    return \%roles;
}

# What the marks of a thread mean, one word for each: 'waits', 'acquired', 'unknown' (one of these two), 'released' (of
# a recorded lock), 'nothing' or 'other'.
sub meanings {
    my ($roles, $marks) = @_;
    my (@meanings, $before);
    for my $i (0 .. $#$marks) {
        my $mark = $marks->[$i];
        if (defined $mark->{word}) {
            push @meanings, recorded($marks, $i);
            $before = undef;
            next;
        }
        my $line = defined $mark->{address} ? $roles->{ $mark->{at} } : undef;
        my $balance = $line ? $line->{ $mark->{address} } // 0 : 0;
        my $meaning = !$line ? 'other' : $balance > 0 ? 'waits' : $balance < 0 ? 'acquired' : undef;
        # Another inlined copy of the line, which no thread in the input has passed. The mark means "waits" unless the
        # mark before it is the first of the pair. A thread's very first mark, number 0, has none before it.
        $meaning //=
              !$before                     ? $mark->{sequence} == 0 ? 'waits' : 'unknown'
            : $before->{at} ne $mark->{at} ? 'waits'
            : $meanings[-1] eq 'waits'     ? 'acquired'
            : $meanings[-1] eq 'acquired'  ? 'waits'
            :                                'unknown';
        push @meanings, $meaning;
        $before = $mark;
    }
    return @meanings;
}

# What a mark of a lock means. After "takes", the mark of a recorded lock, the thread has the lock unless it waits or
# fails next. A thread that goes on after "waits" has the lock unless it failed. If the lock is marked by hand, "acquired"
# follows instead. A thread that is "idle" waits on a condition variable and has released the lock meanwhile.
sub recorded {
    my ($marks, $i) = @_;
    my $word = $marks->[$i]{word};
    my $next = (grep { defined } map { $_->{word} } @$marks[ $i + 1 .. $#$marks ])[0] // '';
    return 'released' if $word eq 'released' || $word eq 'idle';
    return 'acquired' if $word eq 'acquired' || $word eq 'woken';
    return $next eq 'waits' || $next eq 'failed' ? 'nothing' : 'acquired' if $word eq 'takes';
    return $i == $#$marks ? 'waits' : $next eq 'failed' || $next eq 'acquired' ? 'nothing' : 'acquired'
        if $word eq 'waits';
    return 'nothing';
}

# Whether $wanted is the whole name of a file as shown, or the last parts of its path.
sub is_file {
    my ($shown, $wanted) = @_;
    return 1 if $shown eq $wanted;
    my $tail = "/$wanted";
    return length $shown > length $tail && substr($shown, -length $tail) eq $tail;
}

1;
