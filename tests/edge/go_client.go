// Asks an HTTP/2 server for one page many times at once, and sends it a body whose length it does not tell.
//
// go run go_client.go ADDRESS CA-FILE HOST: prints, of each exchange, protocol, status and octets received.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

const atOnce = 50

func main() {
	address, host := os.Args[1], os.Args[3]
	authority, err := os.ReadFile(os.Args[2])
	if err != nil {
		panic(err)
	}
	known := x509.NewCertPool()
	known.AppendCertsFromPEM(authority)
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{RootCAs: known},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}}
	show := func(answer *http.Response, err error) {
		if err != nil {
			fmt.Println(err)
			return
		}
		defer answer.Body.Close()
		octets, err := io.Copy(io.Discard, answer.Body)
		fmt.Println(answer.Proto, answer.StatusCode, octets, err)
	}
	var all sync.WaitGroup
	for range make([]struct{}, atOnce) {
		all.Add(1)
		go func() {
			defer all.Done()
			show(client.Get("https://" + host + "/large"))
		}()
	}
	all.Wait()
	read, write := io.Pipe()
	go func() {
		for range make([]struct{}, 100) {
			io.WriteString(write, strings.Repeat("x", 10_000))
		}
		write.Close()
	}()
	show(client.Post("https://"+host+"/", "text/plain", read))
}
