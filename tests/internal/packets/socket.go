package packets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// socket receives all packets of one network namespace.
type socket struct {
	file *os.File
	raw  syscall.RawConn

	mutex sync.Mutex
	moved *sync.Cond // a packet was searched, or the reader ended
	// came are the packets that the kernel counted, dropped those of them that it had no room for.
	came, dropped int
	// searched are the packets that were read, cut those of them that were not read in full.
	searched, cut int
	ended         bool
}

// listen opens a socket in a network namespace. It receives from then on, and start has it read.
func listen(network string, buffer int) (*socket, error) {
	number, err := openIn(network)
	if err != nil {
		return nil, err
	}
	s := &socket{file: os.NewFile(uintptr(number), "packets of "+network)}
	s.moved = sync.NewCond(&s.mutex)
	if s.raw, err = s.file.SyscallConn(); err == nil {
		// Before it is bound it receives nothing, so nothing is lost for a buffer that is too small.
		err = errors.Join(
			unix.SetsockoptInt(number, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer/2), // the kernel doubles it
			unix.Bind(number, &unix.SockaddrLinklayer{Protocol: everyProtocol()}))
	}
	if err != nil {
		_ = s.file.Close() // the first error says more
		return nil, fmt.Errorf("prepare a packet socket: %w", err)
	}
	return s, nil
}

// openIn opens a packet socket in a network namespace. A socket stays in the namespace of the thread that opened it.
func openIn(network string) (number int, err error) {
	file, err := os.Open(network)
	if err != nil {
		return 0, fmt.Errorf("open a network namespace: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good, so that the thread ends with the goroutine
		err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			number, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		}
		done <- err
	}()
	if err := <-done; err != nil {
		return 0, fmt.Errorf("open a packet socket in a network namespace: %w: it takes root", err)
	}
	return number, nil
}

// everyProtocol is ETH_P_ALL in the byte order of the network.
func everyProtocol() uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
}

// largest is the most that a packet of IPv4 can be, also before the kernel cuts it into segments.
const largest = 1 << 16

// start reads packets until the socket is closed.
func (s *socket) start(c *Capture) {
	go func() {
		packet, search := make([]byte, largest), newSearch(c)
		for {
			size, link, err := s.receive(packet)
			if err != nil {
				break
			}
			search.packet(link, packet[:min(size, largest)])
			s.note(size > largest)
		}
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.ended = true
		s.moved.Broadcast()
	}()
}

// receive waits for a packet and returns its size, which may be more than there is room for, and its interface.
func (s *socket) receive(packet []byte) (size, link int, err error) {
	waited := s.raw.Read(func(number uintptr) bool {
		var from unix.Sockaddr
		size, from, err = unix.Recvfrom(int(number), packet, unix.MSG_TRUNC)
		if from, is := from.(*unix.SockaddrLinklayer); is {
			link = from.Ifindex
		}
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
	})
	return size, link, errors.Join(waited, err)
}

func (s *socket) note(cut bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.searched++; cut {
		s.cut++
	}
	s.moved.Broadcast()
}

// catchUp waits until all packets that came by now are searched. It returns how many there are since the socket was
// opened, and how many of them were not searched.
func (s *socket) catchUp() (came, lost int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	_ = s.raw.Control(func(number uintptr) { // of a closed socket the last count stands
		if count, err := unix.GetsockoptTpacketStats(int(number), unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
			s.came, s.dropped = s.came+int(count.Packets), s.dropped+int(count.Drops) // each call counts from 0 again
		}
	})
	came, lost = s.came, s.dropped
	for s.searched < came-lost && !s.ended {
		s.moved.Wait()
	}
	return came, lost + s.cut + max(0, came-lost-s.searched)
}

func (s *socket) close() {
	s.catchUp()
	_ = s.file.Close() // a second time it is closed
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for !s.ended {
		s.moved.Wait()
	}
}
